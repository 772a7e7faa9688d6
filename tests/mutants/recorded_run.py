"""The recording run: which test passes over which line. What it found is kept until code or tests change."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import coverage

from tests.mutants import recording
from tests.mutants.selection import Recorded
from tests.mutants.trial import copy_tree

PACKAGES = ("webhook", "certs")
FOLDER = ".mutants"
LEFT_OUT = ("tests/docs", "tests/deploy", "tests/mutants", "tests/test_layout.py")
"""Tests that read the code's text, and those of this run itself."""
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


def sources(root: Path) -> dict[str, str]:
    """Return the modules whose mutants are sought."""
    paths = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def recorded(root: Path) -> Recorded:
    """Return what the suite passes over; run it if code or tests have changed since the last time.

    Raises:
        RuntimeError: the run could not be made.
    """
    folder = root / FOLDER
    key = _key(root)
    data_file, durations_file = folder / f"{key}.coverage", folder / f"{key}.json"
    if not durations_file.exists():
        print("mutants: recording which test passes over which line", file=sys.stderr, flush=True)
        for old in folder.glob("*"):
            old.unlink()
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mutants-") as copy:
            durations = _record(root, Path(copy), data_file)
            durations_file.write_text(json.dumps({"root": copy, "durations": durations}))
    return Recorded.load(data_file, durations_file, sources(root))


def _record(root: Path, copy: Path, data_file: Path) -> dict[str, float]:
    """Run the suite in a copy of the tree and return the durations of the tests."""
    copy_tree(root, copy)
    configuration, told = copy / "coverage.ini", copy / "durations.json"
    text = _CONFIGURATION.format(
        packages=",".join(PACKAGES), context=recording.CURRENT_TEST, data_file=copy / "coverage.data"
    )
    configuration.write_text(text)
    subprocess.run(
        [
            *(sys.executable, "-P", "-m", "pytest", "-q", "-p", recording.__name__, "-p", "no:cacheprovider"),
            *("-m", "not control_plane", *(f"--ignore={path}" for path in LEFT_OUT)),
        ],
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": str(copy),
            recording.CONFIGURATION: str(configuration),
            recording.DURATIONS: str(told),
        },
        stdout=sys.stderr,
        check=False,
    )
    if not told.exists():
        raise RuntimeError("the suite did not run")
    combined = coverage.Coverage(data_file=str(data_file), config_file=False)
    combined.combine([str(path) for path in copy.glob("coverage.data.*")])
    combined.save()
    durations: dict[str, float] = json.loads(told.read_text())
    return durations


def _key(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(_files(root)):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _files(root: Path) -> Iterator[Path]:
    for folder in (*PACKAGES, "tests"):
        for path in (root / folder).rglob("*"):
            own = path.is_relative_to(root / "tests" / "mutants")
            if path.is_file() and not own and "__pycache__" not in path.parts:
                yield path
