"""The name of the program: in usage lines and examples, and as the user called it."""

import os
import shutil
import sys
from difflib import get_close_matches
from pathlib import Path, PurePath

import click

NAME = "placement-webhook"
PLUGIN = "kubectl placement"
_PLUGIN_FILE = "kubectl-placement"
COMPLETION_VARIABLE = "_PLACEMENT_WEBHOOK_COMPLETE"


def name() -> str:
    """Return the name in usage lines and examples: `kubectl placement` for the kubectl plugin."""
    return PLUGIN if is_kubectl_plugin() else NAME


def is_kubectl_plugin() -> bool:
    """Return whether kubectl has called the program."""
    return PurePath(sys.argv[0]).name == _PLUGIN_FILE


def as_called() -> str:
    """Return the program as the user called it: a name in $PATH, a path, or `python -m webhook`."""
    called = sys.argv[0]
    base = PurePath(called).name
    if base == "__main__.py":
        return f"{PurePath(sys.executable).name} -m webhook"
    if base == _PLUGIN_FILE:
        return PLUGIN
    found = shutil.which(base)
    is_in_path = found is not None and os.path.realpath(found) == os.path.realpath(called)
    return base if is_in_path else called


class SuggestingGroup(click.Group):
    """A group that suggests a similar command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and further arguments.

        Raises:
            click.UsageError: there is no such command.
        """
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), 1)
            ctx.fail(f"No such command '{name}'." + "".join(f" Did you mean '{each}'?" for each in close))
        return super().resolve_command(ctx, args)


class FileCommand(click.Command):
    """A command that reads files by an option, and names that option or `explain` for a stray argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left.

        Raises:
            click.UsageError: an option or an argument is not known.
        """
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _, found, stray = error.message.rstrip(")").partition("unexpected extra argument (")
            if not found:
                raise
            raise click.UsageError(f"{error.message}; {self._meant(stray)}", ctx) from error

    def _meant(self, stray: str) -> str:
        kind, slash, _ = stray.partition("/")
        if "-f" in self._flags and slash and kind.isalpha() and kind.islower() and not Path(stray).exists():
            return f"`{name()} explain {stray}` reports on an object of the cluster"
        return f"files follow {'-f' if '-f' in self._flags else '--policy'}"

    @property
    def _flags(self) -> set[str]:
        return {flag for each in self.params for flag in each.opts}


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
