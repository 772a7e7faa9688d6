"""Fork server: imports pytest and the libraries once; a child per run imports the (mutated) code and runs the tests.

One JSON object a line on standard input, one answer a line on standard output. It runs in a copy of the tree.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

LIBRARIES = (
    "aiohttp.web",
    "click",
    "cryptography.x509",
    "jsonpatch",
    "kubernetes.client",
    "kubernetes.config",
    "lark",
    "numpy",
    "orjson",
    "prometheus_client",
    "pydantic",
    "rich.console",
    "structlog",
    "urllib3",
    "yaml",
)


class Chosen:
    """Pytest plugin: run the tests asked for and no others, in their order, without randomness; report the killer."""

    def __init__(self, tests: list[str], answer: Path) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self._answer = answer
        self._failed = False

    def pytest_sessionstart(self) -> None:
        """Set up Hypothesis after tests/conftest.py: to shrink an example would only take time."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", phases=phases, derandomize=True, database=None)
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name the running test: one that runs into its timeout ends the process."""
        self._answer.write_text(json.dumps({"test": nodeid, "running": True}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = True
            self._answer.write_text(json.dumps({"test": report.nodeid, "running": False}))

    def pytest_runtest_logfinish(self) -> None:
        if not self._failed:
            self._answer.unlink()


def run(tests: list[str], seconds_per_test: float, answer: Path) -> int:
    """Run tests in this process and return pytest's exit code."""
    arguments = [
        *("-x", "-q", "--assert=plain", "--tb=short", "-p", "no:cacheprovider"),
        *("--timeout-method=thread", f"--timeout={seconds_per_test:.0f}"),
        f"--basetemp={answer.parent / 'tmp'}",
        *dict.fromkeys(test.partition("::")[0] for test in tests),
    ]
    return int(pytest.main(arguments, plugins=[Chosen(tests, answer)]))


def serve() -> None:
    """Answer requests until standard input ends."""
    for library in LIBRARIES:
        importlib.import_module(library)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for request in _requests():
        answers.write(json.dumps(_answer(request)) + "\n")


def _requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    answer = Path(request["answer"])
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _be_child(request, answer)
    code = _wait(child, request["seconds"])
    reported = json.loads(answer.read_text()) if answer.exists() else {"test": None, "running": False}
    return {"test": reported["test"], "timeout": code is None or (reported["running"] and code == 1), "code": code}


def _be_child(request: dict[str, Any], answer: Path) -> None:
    code = 3
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        output = os.open(f"{answer}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = run(request["tests"], request["seconds_per_test"], answer)
    finally:
        os._exit(code)


def _wait(child: int, seconds: float) -> int | None:
    """Return the exit code of the child; None if it took too long. Its children end with it."""
    ending = os.pidfd_open(child)
    try:
        has_ended = bool(select.select([ending], [], [], seconds)[0])
    finally:
        os.close(ending)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if has_ended else None


if __name__ == "__main__":
    serve()
