"""What tests need of others' programs: found, built or downloaded once for a run, which can take longer than a test."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Generic, TypeVar

import pytest

from tests.controlplane.cache import Progress

T = TypeVar("T")


class Prepared(Generic[T]):
    """The result of `prepare`, or the reason why it failed with one of `failures`; both are kept for the process."""

    def __init__(
        self,
        title: str,
        prepare: Callable[[Mapping[str, str], Progress], T],
        *failures: type[Exception],
    ) -> None:
        self._title, self._prepare, self._failures = title, prepare, failures
        # Before tests change it: they trust no public authority, which downloads need.
        self._environ = dict(os.environ)
        self._lock = threading.Lock()
        self._results: list[T] = []
        self._reason = ""
        self._lines: list[str] = []

    def prepare(self) -> None:
        """Prepare it, unless that is done; wait where another thread does it."""
        with self._lock:
            if self._results or self._reason:
                return
            try:
                self._results.append(self._prepare(self._environ, self._lines.append))
            except self._failures as failure:
                self._reason = f"no {self._title}: {failure}"

    def failure(self, config: pytest.Config) -> str:
        """Prepare it, unless that is done; return the reason why it is missing, empty if it is there."""
        self.prepare()
        while self._lines:
            self._print(config, self._lines.pop(0))
        return self._reason

    def of(self, config: pytest.Config) -> T:
        """Return it; where it is missing, the test fails."""
        if reason := self.failure(config):
            pytest.fail(reason, pytrace=False)
        return self._results[0]

    def _print(self, config: pytest.Config, line: str) -> None:
        """Write to the terminal, which pytest keeps for itself while it captures."""
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"{self._title}: {line}", file=sys.stderr, flush=True)


def prepare_in_background(each: Iterable[Prepared[Any]]) -> None:
    """Prepare them one after the other in a thread, while tests run that need none of them."""

    def run() -> None:
        for prepared in each:
            prepared.prepare()

    threading.Thread(target=run, name="prepare programs", daemon=True).start()
