"""The recording run: which test passes over which line. What it found is kept until code or tests change."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import coverage

from tests.mutants import recording
from tests.mutants.selection import Recorded
from tests.mutants.trial import copy_tree

PACKAGES = ("webhook", "certs")
FOLDER = ".mutants"
LEFT_OUT = ("tests/docs/test_commands.py", "tests/deploy/", "tests/mutants/", "tests/test_layout.py")
"""Tests of manifests and of the code's layout, tests that take a process per command, and those of this run itself."""
_CONFIGURATION = """\
[run]
core = ctrace
parallel = true
sigterm = true
source_pkgs = {packages}
context = ${{{context}-}}
data_file = {data_file}
disable_warnings = module-not-imported, no-data-collected, module-not-measured, already-imported
"""


@dataclass
class _Kept:
    """The last recording: digests of its inputs, and the seconds that each test took."""

    code: str = ""
    tests: dict[str, str] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)


def sources(root: Path) -> dict[str, str]:
    """Return the modules whose mutants are sought."""
    paths = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def recorded(root: Path) -> Recorded:
    """Return what the suite passes over.

    Test files that are new or changed are run; all of them if anything else in the code or the tests has changed.

    Raises:
        RuntimeError: the run could not be made.
    """
    folder = root / FOLDER
    data_file, kept_file = folder / "coverage", folder / "recording.json"
    kept = _Kept(**json.loads(kept_file.read_text())) if kept_file.exists() else _Kept()
    code, tests = _digests(root)
    if kept.code != code:
        kept = _Kept(code)
        data_file.unlink(missing_ok=True)
    changed = [file for file, digest in tests.items() if kept.tests.get(file) != digest]
    kept.durations = {
        test: seconds
        for test, seconds in kept.durations.items()
        if (file := test.partition("::")[0]) in tests and file not in changed
    }
    if changed:
        print(f"mutants: recording the lines of {len(changed)} test files", file=sys.stderr, flush=True)
        folder.mkdir(exist_ok=True)
        kept.durations |= _record(root, changed, data_file)
    kept.tests = tests
    kept_file.write_text(json.dumps(asdict(kept)))
    return Recorded.load(data_file, str(folder / "tree"), kept.durations, sources(root))


def _record(root: Path, files: Iterable[str], data_file: Path) -> Mapping[str, float]:
    """Run test files in a copy of the tree, add what they pass over to `data_file` and return their durations."""
    with _copy(root) as copy:
        configuration, reported = copy / "coverage.ini", copy / "durations.json"
        text = _CONFIGURATION.format(
            packages=",".join(PACKAGES), context=recording.CURRENT_TEST, data_file=copy / "coverage.data"
        )
        configuration.write_text(text)
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", "pytest", "-q", "-p", recording.__name__, "-p", "no:cacheprovider"),
                *("-m", "not control_plane", *files),
            ],
            cwd=copy,
            env={
                **os.environ,
                "PYTHONPATH": str(copy),
                recording.CONFIGURATION: str(configuration),
                recording.DURATIONS: str(reported),
            },
            stdout=sys.stderr,
            check=False,
        )
        if not reported.exists():
            raise RuntimeError("the suite did not run")
        combined = coverage.Coverage(data_file=str(data_file), config_file=False)
        if data_file.exists():
            combined.load()
        combined.combine([str(path) for path in copy.glob("coverage.data.*")])
        combined.save()
        durations: dict[str, float] = json.loads(reported.read_text())
        return durations


@contextmanager
def _copy(root: Path) -> Iterator[Path]:
    """Copy the tree to a place that stays the same: recorded paths are absolute."""
    copy = root / FOLDER / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        copy_tree(root, copy)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _digests(root: Path) -> tuple[str, dict[str, str]]:
    """Return the digest of the code, with what tests share, and those of the test files by path."""
    code, tests = hashlib.sha256(), {}
    for folder in (*PACKAGES, "tests"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if not path.is_file() or "__pycache__" in path.parts or name.startswith(LEFT_OUT):
                continue
            if folder == "tests" and path.match("test_*.py"):
                tests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                code.update(f"{name}\0".encode() + path.read_bytes())
    return code.hexdigest(), tests
