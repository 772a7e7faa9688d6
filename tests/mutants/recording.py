"""Pytest plugin: record which test passes over which line, in this process and in those that it starts."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

CONFIGURATION = "MUTANTS_COVERAGE"
"""Environment variable: path of coverage's configuration file."""
DURATIONS = "MUTANTS_DURATIONS"
"""Environment variable: path of the file that gets the processor seconds that each test took."""
CURRENT_TEST = "MUTANTS_TEST"
"""Environment variable: node ID of the running test, which the processes that it starts take as their context."""


class Recorder:
    def __init__(self) -> None:
        self._coverage = coverage.Coverage(config_file=os.environ[CONFIGURATION])
        self._durations: dict[str, float] = {}
        self._coverage.start()
        os.environ["COVERAGE_PROCESS_START"] = os.environ[CONFIGURATION]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        os.environ[CURRENT_TEST] = item.nodeid
        began = _processor_seconds()
        try:
            return (yield)
        finally:
            self._durations[item.nodeid] = _processor_seconds() - began
            self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        Path(os.environ[DURATIONS]).write_text(json.dumps(self._durations))


def _processor_seconds() -> float:
    """Return what this process and those that it waited for have used: a loaded machine does not change it much."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    if CONFIGURATION in os.environ:
        config.pluginmanager.register(Recorder(), "mutants-recorder")
