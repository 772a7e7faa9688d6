"""Servers of the short forms of benchmarks."""

import pytest

from tests.support.programs.programs import forked
from tests.support.servers import processes


@pytest.fixture
def forked_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the servers: imports take most of a short run. One that is killed may end a moment later than its client."""
    monkeypatch.setattr(processes, "PROGRAM", (forked(),))
