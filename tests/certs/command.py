"""`placement-webhook certs …`, run in this process as a shell would."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from webhook.cli import main


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    output: str
    errors: str


Run = Callable[..., Outcome]


@pytest.fixture
def certs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["placement-webhook", "certs", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, told.out, told.err)

    return run
