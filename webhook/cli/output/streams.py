"""Standard output and standard error of all commands: an output that fails or is closed ends them alike."""

import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO


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
    """Drops text that standard error does not take: there is no place left to report that."""

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
    """Discard the output that is not written yet, and all that follows: its reader does not take it."""
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
