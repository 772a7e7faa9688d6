"""Output to standard output and standard error, with the control characters of objects escaped.

Users control the texts of pods, clusters, records, certificates and API servers. These texts are printed with control
characters as escapes. Only this module and `webhook.cli.output.screen` (for layouts) add colours. If an output fails or
is closed, every command ends in the same way.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

import click
import orjson

from webhook.documents.text import json_bytes, printable, printable_lines, safe_json

_SECONDS_BETWEEN = 0.2
_taken: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def may_colour() -> bool:
    """Return whether colours are used on a terminal: not with NO_COLOR (https://no-color.org) or a dumb terminal."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def remarks_taken() -> Iterator[list[str]]:
    """Collect the lines that this thread would print on standard error within the block, without progress."""
    remarks: list[str] = []
    token = _taken.set(remarks)
    try:
        yield remarks
    finally:
        _taken.reset(token)


def echo(text: str, *, err: bool = False, fg: str | None = None) -> None:
    """Print `text` as one line, in the colour `fg` on a terminal."""
    text = printable(text)
    if err and (taken := _taken.get()) is not None:
        taken.append(text)
        return
    click.echo(click.style(text, fg=fg) if fg and may_colour() else text, err=err)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    echo(f"Warning: {text}", fg="yellow", err=True)


def echo_fields(*fields: str) -> None:
    """Print the fields as one line, separated by tabs."""
    click.echo("\t".join(map(printable, fields)))


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print `text` with its line breaks. The caller must escape the texts of objects in it with `printable`."""
    click.echo(printable_lines(text), nl=False, err=err)


def echo_json(document: Any, *, indent: bool = False) -> None:
    """Print `document` as JSON, on one line unless `indent` is set."""
    echo_json_lines([json_bytes(document, orjson.OPT_INDENT_2 if indent else 0)])


def echo_json_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON unchanged, except for escaped control characters."""
    sys.stdout.flush()
    output = sys.stdout.buffer
    output.writelines(safe_json(line) + b"\n" for line in lines)
    output.flush()


def echo_progress(text: str) -> None:
    """Print `text` on standard error, on a terminal in place of the previous text."""
    is_terminal = sys.stderr.isatty()
    click.echo(("\r" if is_terminal else "") + printable(text), nl=not is_terminal, err=True)


class Progress:
    """Prints the progress of work to standard error a few times a second, if that is a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty() and _taken.get() is None
        self._last = time.monotonic()
        self._is_shown = False

    def of(self, name: str) -> Callable[[int], None]:
        """Return a function to call with the number of placed pods of `name`."""
        return lambda placed: self.show(f"{name}: {placed} placed")

    def show(self, text: str) -> None:
        """Print `text` in place of the previous text."""
        now = time.monotonic()
        if self._is_terminal and now - self._last >= _SECONDS_BETWEEN:
            self._last, self._is_shown = now, True
            echo_progress(text)

    def end(self) -> None:
        """End the line of the progress."""
        if self._is_shown:
            echo("", err=True)
            self._is_shown = False


class OutputError(Exception):
    """Standard output cannot be written, for another reason than a reader that has closed it."""


class _Output(io.FileIO):
    """Raises OutputError, so that a full disk behind standard output differs from one behind another file."""

    def write(self, data: Any, /) -> Any:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.strerror or str(error)) from error


class _Diagnostics(io.FileIO):
    """Drops text that cannot be written to standard error, because there is no other place to report the error."""

    def write(self, data: Any, /) -> Any:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Replace standard output and standard error by streams with the errors of this module."""
    sys.stdout = _replaced(sys.stdout, 1, _Output)
    sys.stderr = _replaced(sys.stderr, 2, _Diagnostics)


def discard_output() -> None:
    """Discard the output that is not written yet and all later output, because the reader has closed it."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _replaced(stream: TextIO | None, descriptor: int, raw: type[io.FileIO]) -> TextIO:
    if stream is None:  # closed by the caller
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper) or _descriptor(stream) != descriptor:
        return stream
    buffered = io.BufferedWriter(raw(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(
        buffered,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
