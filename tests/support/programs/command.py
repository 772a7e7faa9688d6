"""`placement-webhook …`, run in this process as a shell would, and in one of its own."""

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import click
import pytest

from tests.support.programs.programs import forked
from webhook.cli import main
from webhook.cli.root import root


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of a command and what it printed."""

    code: int
    output: str
    errors: str


Run = Callable[..., Outcome]


def run_here(*arguments: object, stdin: str | bytes = b"") -> Outcome:
    """Run the command with these arguments in this process, and `stdin` on its standard input."""
    text = stdin.encode() if isinstance(stdin, str) else stdin
    given, output, errors = (io.TextIOWrapper(io.BytesIO(each), encoding="utf-8") for each in (text, b"", b""))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["placement-webhook", *map(str, arguments)])
        for name, stream in (("stdin", given), ("stdout", output), ("stderr", errors)):
            patched.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as left:
            main()
    assert isinstance(left.value.code, int)
    return Outcome(left.value.code, _printed(output), _printed(errors))


def _printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@pytest.fixture
def run() -> Run:
    """Run the command in this process."""
    return run_here


@pytest.fixture
def certs() -> Run:
    """Run `placement-webhook certs …` in this process."""
    return partial(run_here, "certs")


def run_alone(*arguments: object, environment: dict[str, str] | None = None) -> Outcome:
    """Run the command in a process of its own, for what sets up the whole process."""
    command = [forked(), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def understand(arguments: list[str]) -> None:
    """Return if the program accepts these arguments.

    Raises:
        click.UsageError: it rejects them.
    """
    command: click.Command = root
    rest = list(arguments)
    while isinstance(command, click.Group):
        if not rest or rest[0] in ("--help", "--version"):
            return
        name = rest.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            raise click.UsageError(f"no such command: {name}")
        command = found
    # As under the program itself: a command remembers its help option from the first context that asks.
    command.make_context(command.name, rest, parent=click.Context(root, **root.context_settings))
