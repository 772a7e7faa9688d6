"""The first and the last record of an audit file, found without reading the others."""

import os
from collections.abc import Iterator
from pathlib import Path

from webhook.audit.record import LARGEST_BYTES, AuditRecord, parse_line

_BLOCK_BYTES = 64 * 1024
_TAIL_BYTES = 16 * 1024 * 1024  # where to look for the last record; in what is no audit file, there is none to find


def first_record(path: Path) -> AuditRecord | None:
    """Return the record in the first line, or None.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return _record(file.readline(LARGEST_BYTES + 1).removesuffix(b"\n"))


def last_record(path: Path) -> AuditRecord | None:
    """Return the last record that the file holds, or None.

    Raises:
        OSError: the file cannot be read.
    """
    line = last_line(path)
    return _record(line) if line else None


def last_line(path: Path) -> bytes | None:
    """Return the last line that holds a record, or None.

    Raises:
        OSError: the file cannot be read.
    """
    return next((line for line in _lines_backwards(path) if _record(line)), None)


def _record(line: bytes) -> AuditRecord | None:
    try:
        return parse_line(line)
    except ValueError:
        return None


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file from its last to its first, as far as `_TAIL_BYTES` reach; the last may lack its newline."""
    with path.open("rb") as file:
        start = file.seek(0, os.SEEK_END)
        first = max(0, start - _TAIL_BYTES)
        rest = b""
        while start > first:
            length = min(_BLOCK_BYTES, start - first)
            start -= length
            file.seek(start)
            rest, *lines = (file.read(length) + rest).split(b"\n")
            yield from reversed(lines)
        yield rest
