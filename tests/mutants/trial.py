"""Mutants tried one after another in a copy of the tree; the tree itself is never written."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.mutants.finding import Mutant, change

KILLED, TIMEOUT, SURVIVED, UNTESTED = "killed", "timeout", "survived", "no test"
_NO_TEST_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a mutant, and the lines that it changes."""

    mutant: Mutant
    outcome: str
    before: str
    after: str
    killer: str | None = None
    tests: int = 0

    @property
    def is_killed(self) -> bool:
        return self.outcome in (KILLED, TIMEOUT)


def copy_tree(root: Path, target: Path) -> None:
    """Copy what Git tracks and what is new, not what Git ignores."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


class Workshop:
    """A copy of the tree with a fork server in it."""

    def __init__(self, root: Path, durations: Mapping[str, float], seconds_to_spare: float = 20.0) -> None:
        self._root = root
        self._durations = durations
        self._seconds_to_spare = seconds_to_spare
        self._trusted: set[str] = set()
        self._mistrusted: set[str] = set()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self._tree = Path(self._folder.name, "tree")
        copy_tree(self._root, self._tree)
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.mutants.server"],
            cwd=self._tree,
            env={**os.environ, "PYTHONPATH": str(self._tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.terminate()
        for stream in (self._server.stdin, self._server.stdout):
            assert stream
            stream.close()
        self._server.wait()
        self._folder.cleanup()

    def try_mutant(self, mutant: Mutant, source: str, parts: list[list[str]]) -> Verdict:
        """Run the tests part by part until one fails.

        A test is believed once it has passed here on the code without a fault: it could fail because of the place or
        the load of the machine.
        """
        mutated = mutant.code(source)
        before, after = change(source, mutated)
        number = sum(map(len, parts))
        if not number:
            return Verdict(mutant, UNTESTED, before, after)
        place = self._tree / mutant.path
        try:
            _write(place, mutated)
            for part in parts:
                while True:
                    answer = self._run([test for test in part if test not in self._mistrusted])
                    killer = answer["test"]
                    if killer is None or self._is_trusted(killer, place, source, mutated):
                        break
                if answer["code"] not in (0, _NO_TEST_COLLECTED):
                    outcome = TIMEOUT if answer["timeout"] else KILLED
                    return Verdict(mutant, outcome, before, after, killer, number)
        finally:
            _write(place, source)
        return Verdict(mutant, SURVIVED, before, after, None, number)

    def _is_trusted(self, test: str, place: Path, source: str, mutated: str) -> bool:
        if test not in self._trusted:
            _write(place, source)
            passes = self._run([test])["code"] == 0
            (self._trusted if passes else self._mistrusted).add(test)
            _write(place, mutated)
        return test in self._trusted

    def _run(self, tests: list[str]) -> dict[str, Any]:
        if not tests:
            return {"test": None, "timeout": False, "code": 0}
        taken = [self._durations.get(test, 1.0) for test in tests]
        request = {
            "tests": tests,
            "answer": str(Path(self._folder.name, "answer")),
            "seconds_per_test": self._seconds_to_spare + 10 * max(taken),
            "seconds": 3 * self._seconds_to_spare + 3 * sum(taken),
        }
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer

    @property
    def mistrusted(self) -> frozenset[str]:
        return frozenset(self._mistrusted)


def _write(path: Path, source: str) -> None:
    """Write a module, and remove its bytecode: Python would take it for this one's within the same second."""
    path.write_text(source)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
