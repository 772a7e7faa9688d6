"""Write a file completely or not at all."""

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from webhook.documents.field import FieldError, InvalidInput, invalid


def check_writable(output: Path) -> None:
    """Return if a file can be written there, before a large cluster is read.

    Raises:
        InvalidInput: the file cannot be written.
    """
    try:
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InvalidInput([_unwritable(output, error)]) from error


def write_whole(output: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` with a file that becomes `output` once it is complete.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as file:
            try:
                write(file)
                file.close()
                Path(file.name).replace(output)
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
    except OSError as error:
        raise InvalidInput([_unwritable(output, error)]) from error


def _unwritable(output: Path, error: OSError) -> FieldError:
    return invalid("--output", str(output), f"cannot be written: {error.strerror}")
