"""Files on the command line, and the types of options."""

import sys
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import click

from webhook.documents.field import InvalidInput, invalid
from webhook.runtime.settings import Address, parse_address, parse_go_duration

Command: TypeAlias = Callable[..., Any]
Option: TypeAlias = Callable[[Command], Command]

STANDARD_INPUT = "-"
# Shells complete file names for options of these types.
FILE, PATH = click.Path(allow_dash=True), click.Path(path_type=Path)


def options(*given: Option) -> Option:
    """Return a decorator that adds the options `given` to a command. The order is that of --help."""

    def add(command: Command) -> Command:
        for option in reversed(given):
            command = option(command)
        return command

    return add


def file_option(*names: str, kind: click.Path = FILE, **attributes: Any) -> Option:
    """Return an option for a file. `attributes` are passed to click."""
    return click.option(*names, type=kind, metavar="FILE", **attributes)


def output_choice(choices: Sequence[str], **attributes: Any) -> Option:
    """Return `--output` with these choices, the first one by default."""
    kind = click.Choice(choices)
    return click.option("-o", "--output", type=kind, default=choices[0], show_default=True, **attributes)


output_option = output_choice(["text", "json"])


class AddressType(click.ParamType[Address]):
    """HOST:PORT on the command line."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """Return the address. Raise a usage error for an invalid one."""
        if isinstance(value, Address):
            return value
        try:
            return parse_address(value)
        except ValueError as error:
            self.fail(f'"{value}" {error}', param, ctx)


class DurationType(click.ParamType[float]):
    """A Go duration on the command line, in seconds. 0 is invalid unless `allows_zero` is set."""

    name = "DURATION"

    def __init__(self, *, allows_zero: bool = False) -> None:
        self._allows_zero = allows_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. Raise a usage error for an invalid duration."""
        seconds = parse_go_duration(str(value))
        if seconds is None or not (seconds or self._allows_zero):
            self.fail(f'"{value}" must be a duration such as 90s, 30m or 24h', param, ctx)
        return seconds


class NamesType(click.ParamType[tuple[str, ...]]):
    """Some of the names `known` on the command line, separated by commas. `allows_none` allows no name."""

    name = "NAMES"

    def __init__(self, known: Collection[str], *, allows_none: bool = False) -> None:
        self._known, self._allows_none = known, allows_none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names. Raise a usage error for an unknown one."""
        names = tuple(filter(None, value.split(",")) if self._allows_none else value.split(","))
        for name in names:
            if name not in self._known:
                meant = "".join(f" Did you mean '{each}'?" for each in get_close_matches(name, self._known, 1))
                all_names = ", ".join(self._known)
                self.fail(f"'{name}' must be one of {all_names}, or several with commas.{meant}", param, ctx)
        return names


class PolicyFiles(click.Option):
    """A `multiple` option whose environment variable names one file."""

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """Return the one file of the variable, whose name can have any character."""
        found = self.resolve_envvar_value(ctx)
        return None if found is None else (found,)


class PolicyFile(PolicyFiles):
    """A `multiple` option that raises an error if it is given twice, instead of using the last file."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the file, or None if it is not given.

        Raises:
            click.UsageError: several are given.
        """
        given = super().process_value(ctx, value)
        if given and len(given) > 1:
            raise click.UsageError("--policy can be given once here: one file can hold several policies.", ctx)
        return given[0] if given else None


_POLICY = "A PlacementPolicy, or several documents, each for the namespaces that it selects; default: the built-in one."
policy_option = file_option("--policy", cls=PolicyFile, kind=PATH, multiple=True, help=_POLICY)
# A manifest sets the flag, and what is added to it wins, as for the other flags of the server.
_LAST = f"{_POLICY} Of several files, the last one is used."
last_policy_option = file_option("--policy", cls=PolicyFiles, kind=PATH, multiple=True, help=_LAST)


def check_standard_input(*given: tuple[str, str | None]) -> None:
    """Check that at most one of the files, each `given` with its flag, is standard input.

    Raises:
        click.UsageError: several files are standard input, which can be read only once.
    """
    first, *others = [flag for flag, filename in given if filename == STANDARD_INPUT] or [""]
    if others and others[0] == first:
        raise click.UsageError(f"{first} can be standard input once; leave the other out.")
    if others:
        raise click.UsageError(f"{first} and {others[0]} cannot both be standard input; put one of them into a file.")


def place_of(filename: str) -> str:
    """Return the name of a file in errors."""
    return "<stdin>" if filename == STANDARD_INPUT else filename


def read_text(filename: str, flag: str) -> bytes:
    """Return the bytes of the file, or of standard input for `-`.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if filename == STANDARD_INPUT else Path(filename).read_bytes()
    except OSError as error:
        raise unreadable(flag, filename, error) from error


def open_bytes(filename: str, flag: str) -> BinaryIO:
    """Return the opened file. Standard input and pipes are read into memory, so that they can be read more than once.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        # A pipe can be opened once.
        if filename != STANDARD_INPUT and Path(filename).is_file():
            return Path(filename).open("rb")
    except OSError as error:
        raise unreadable(flag, filename, error) from error
    return BytesIO(read_text(filename, flag))


def unreadable(flag: str, filename: str, error: OSError) -> InvalidInput:
    """Return the error of a file, which the user gave as `flag`, that cannot be read."""
    return InvalidInput([invalid(flag, filename, f"cannot be read: {error.strerror or error}")])
