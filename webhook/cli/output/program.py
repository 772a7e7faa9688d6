"""The name of the program: in usage lines and examples, and as the user called it."""

import os
import shutil
import sys
from pathlib import PurePath

import click

NAME = "placement-webhook"
PLUGIN = "kubectl placement"
_PLUGIN_FILE = "kubectl-placement"
COMPLETION_VARIABLE = "_PLACEMENT_WEBHOOK_COMPLETE"


def name() -> str:
    """Return the name in usage lines and examples: `kubectl placement` for the kubectl plugin."""
    return PLUGIN if PurePath(sys.argv[0]).name == _PLUGIN_FILE else NAME


def as_called() -> str:
    """Return the command that the user called, to call it again: a name in $PATH, a path, or `python -m webhook`."""
    called = sys.argv[0]
    base = PurePath(called).name
    if base == "__main__.py":
        return f"{PurePath(sys.executable).name} -m webhook"
    if base == _PLUGIN_FILE:
        return PLUGIN
    found = shutil.which(base)
    is_in_path = found is not None and os.path.realpath(found) == os.path.realpath(called)
    return base if is_in_path else called


class _Formatter(click.HelpFormatter):
    """Writes the name of the program into the examples of a help text."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace(f"{NAME} ", f"{name()} "))


class ProgramContext(click.Context):
    """A context whose help names the program as it is called."""

    formatter_class = _Formatter


def with_program_name(command: click.Command) -> click.Command:
    """Return the command and its subcommands with examples that name the program as it is called."""
    command.context_class = ProgramContext
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_program_name(inner)
    return command
