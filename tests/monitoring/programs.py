"""Where prometheus and promtool are: in PATH, else downloaded once from Debian's packages and kept.

The package is downloaded and unpacked into the cache of the tests. Nothing is installed, and the package lists of the
system stay as they are.
"""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.cache import Progress, cache_folder, locked, made_whole

PROGRAMS = ("prometheus", "promtool")

_WAY_IN = "put prometheus and promtool into PATH"


class MissingPrometheus(Exception):  # noqa: N818 - a finding: tests skip on it
    """Prometheus is not in PATH and could not be downloaded; says why, and the remedy."""


def find_or_download(environ: Mapping[str, str], progress: Progress) -> dict[str, Path]:
    """Return the path of each of PROGRAMS.

    Raises:
        MissingPrometheus: they are not in PATH, and there is no apt or it failed.
    """
    own = {program: shutil.which(program, path=environ.get("PATH")) for program in PROGRAMS}
    if all(own.values()):
        return {program: Path(path) for program, path in own.items() if path}
    cache = cache_folder(environ).parent / "prometheus"
    target = cache / platform.machine()
    if not target.exists():
        with locked(cache, progress):
            if not target.exists():
                _download(target, environ, progress)
    return {program: target / program for program in PROGRAMS}


def _download(target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    progress(f"downloading Prometheus with apt-get into {target}, once")
    with made_whole(target) as unfinished:
        apt = unfinished / "apt"
        for folder in ("lists", "cache", "package"):
            (apt / folder / "partial").mkdir(parents=True)
        # Lists of its own: those of the system can be missing or old, and changing them takes root.
        options = [f"-oDir::State::Lists={apt / 'lists'}", f"-oDir::Cache={apt / 'cache'}", "-oAPT::Sandbox::User="]
        _run(["apt-get", "-q", *options, "update"], apt, environ)
        _run(["apt-get", "-q", *options, "download", "prometheus"], apt / "package", environ)
        (package,) = (apt / "package").glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), str(apt / "unpacked")], apt, environ)
        for program in PROGRAMS:
            (apt / "unpacked" / "usr" / "bin" / program).rename(unfinished / program)
            _run([str(unfinished / program), "--version"], apt, environ)
        shutil.rmtree(apt)
    progress("downloaded")


def _run(command: list[str], folder: Path, environ: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(command, cwd=folder, env=dict(environ), capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingPrometheus(f"{command[0]}: {error.strerror}; {_WAY_IN}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise MissingPrometheus(f"{Path(command[0]).name} {command[-1]}: {lines[-1]}; {_WAY_IN}")
