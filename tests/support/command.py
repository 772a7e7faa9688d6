"""`placement-webhook …`, run in this process as a shell would, and in one of its own."""

import io
import subprocess
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
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command with these arguments, and `stdin` on its standard input."""

    def run_command(*arguments: object, stdin: str | bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["placement-webhook", *map(str, arguments)])
        text = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, told.out, told.err)

    return run_command


def run_alone(*arguments: object, environment: dict[str, str] | None = None) -> Outcome:
    """The command in a process of its own, for what sets up the whole process."""
    command = [sys.executable, "-m", "webhook", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
