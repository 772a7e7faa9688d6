"""Files that are written completely or not at all."""

import errno
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from webhook.documents.field import FieldError, InvalidInput, invalid


def check_writable(output: Path | None, flag: str) -> None:
    """Check that the file can be written, before expensive work is done for it. None is standard output.

    Raises:
        InvalidInput: the file, which the user gave as `flag`, cannot be written.
    """
    if output is None:
        return
    try:
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_device(output):
            with tempfile.TemporaryFile(dir=output.resolve().parent):
                pass
    except OSError as error:
        raise InvalidInput([_unwritable(output, flag, error)]) from error


def write_atomically(output: Path | None, flag: str, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` with a stream, and write the result to `output`, or to standard output if it is None.

    A file is replaced as a whole; a device or a pipe is written to directly.

    Raises:
        InvalidInput: the file, which the user gave as `flag`, cannot be written.
    """
    if output is None:
        write(sys.stdout.buffer)
        return
    try:
        if _is_device(output):
            with output.open("wb") as file:
                write(file)
        else:
            _replace(output.resolve(), write)
    except OSError as error:
        raise InvalidInput([_unwritable(output, flag, error)]) from error


def _is_device(output: Path) -> bool:
    return output.exists() and not output.is_file()


def _replace(output: Path, write: Callable[[IO[bytes]], object]) -> None:
    with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as file:
        try:
            write(file)
            file.close()
            Path(file.name).replace(output)
        except BaseException:
            with suppress(OSError):
                Path(file.name).unlink()
            raise


def _unwritable(output: Path, flag: str, error: OSError) -> FieldError:
    return invalid(flag, str(output), f"cannot be written: {error.strerror or error}")
