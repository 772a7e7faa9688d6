"""What tests need of others' programs: found, built or downloaded once for a run, which can take longer than a test."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Generic, TypeVar

import pytest

from tests.controlplane.cache import Progress

T = TypeVar("T")


class Prepared(Generic[T]):
    """The result of `prepare`, or the reason why it failed with one of `failures`; both are kept for the run."""

    def __init__(
        self,
        title: str,
        prepare: Callable[[Mapping[str, str], Progress], T],
        *failures: type[Exception],
    ) -> None:
        self._title, self._prepare, self._failures = title, prepare, failures
        self._kept = pytest.StashKey[T | str]()

    def failure(self, config: pytest.Config) -> str:
        """Prepare it, unless that is done; return the reason why it is missing, empty if it is there."""
        if self._kept not in config.stash:
            try:
                config.stash[self._kept] = self._prepare(os.environ, lambda line: self._print(config, line))
            except self._failures as failure:
                config.stash[self._kept] = f"no {self._title}: {failure}"
        kept = config.stash[self._kept]
        return kept if isinstance(kept, str) else ""

    def of(self, config: pytest.Config) -> T:
        """Return it; where it is missing, the test fails."""
        self.failure(config)
        kept = config.stash[self._kept]
        if isinstance(kept, str):
            pytest.fail(kept, pytrace=False)
        return kept

    def _print(self, config: pytest.Config, line: str) -> None:
        """Write to the terminal, which pytest keeps for itself while it captures."""
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"{self._title}: {line}", file=sys.stderr, flush=True)
