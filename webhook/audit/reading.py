"""Read audit files: all lines, the first or the last record of a file, or the lines that a server adds."""

import glob
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO, Self

from webhook.audit.record import BEGINNING, LARGEST_BYTES, AuditRecord, parse_line
from webhook.documents.field import InvalidInput, invalid

_BLOCK_BYTES = 64 * 1024
_TAIL_BYTES = 16 * 1024 * 1024  # search range for the last record; a file that is no audit file has none


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, with its line and the line's place (`audit.jsonl:17`)."""

    place: str
    line: bytes
    record: AuditRecord


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line that is not a record, and the reason. `cut_off` is true if the file ends within the line."""

    place: str
    line: bytes
    problem: str
    cut_off: bool


def read(name: str, stream: Iterable[bytes], first: int = 1) -> Iterator[Entry | InvalidLine]:
    """Yield the lines of one file from line number `first` on, without empty ones."""
    for number, text in enumerate(stream, start=first):
        line = text.removesuffix(b"\n")
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            yield Entry(place, line, parse_line(line))
        except ValueError as error:
            yield InvalidLine(place, line, str(error), cut_off=not text.endswith(b"\n"))


def first_record(path: Path) -> AuditRecord | None:
    """Return the record in the first line, or None if the first line is not a record.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return _record(file.readline(LARGEST_BYTES + 1).removesuffix(b"\n"))


def last_entry(path: Path) -> Entry | None:
    """Return the last record of the file with its line, or None if it has none.

    Raises:
        OSError: the file cannot be read.
    """
    records = ((line, _record(line)) for line in _lines_backwards(path))
    return next((Entry(str(path), line, record) for line, record in records if record), None)


def is_audit_log(path: Path) -> bool:
    """Return whether the file is empty, or its first line or one near its end is a record, perhaps cut off by a crash.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        first = file.readline(LARGEST_BYTES + 1)
    is_cut_off = not first.endswith(b"\n") and BEGINNING.startswith(first[: len(BEGINNING)])
    return is_cut_off or first_record(path) is not None or last_entry(path) is not None


def _record(line: bytes) -> AuditRecord | None:
    try:
        return parse_line(line)
    except ValueError:
        return None


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines in the last `_TAIL_BYTES` of a file, the last line first. The last line may lack its newline."""
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


def rotated_files(path: Path) -> list[str]:
    """Return `path` and its rotated files (`path.1`, …) that exist, the oldest first."""
    prefix = f"{path.name}."
    others = path.parent.glob(f"{glob.escape(prefix)}*")
    numbered = [(int(number), file) for file in others if (number := file.name.removeprefix(prefix)).isdecimal()]
    files = [file for _, file in sorted(numbered, reverse=True)]
    return [str(file) for file in (*files, path) if file.is_file()]


def oldest_files(names: Iterable[str]) -> set[str]:
    """Return the file with the highest number of each set of rotated files (`PATH.1`, `PATH.2`, …)."""
    numbers: dict[str, int] = {}
    for name in names:
        base, _, number = name.rpartition(".")
        if number.isdecimal() and PurePath(base).name:
            numbers[base] = max(numbers.get(base, 0), int(number))
    return {f"{base}.{number}" for base, number in numbers.items()}


class FollowedFile:
    """The lines of the file at `path` as they are added; a context manager.

    After a rotation it reads the new file. It starts again at the beginning of a file that was truncated.

    Raises:
        InvalidInput: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        self._rest, self._next_number = b"", 1

    def new_lines(self) -> Iterator[Entry | InvalidLine]:
        """Yield the whole lines that were added since the last call, and after a rotation the rest of the old file."""
        if self._file.seekable() and os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._rest, self._next_number = b"", 1
        text = self._rest + self._file.read()
        if self._is_replaced():
            yield from self._read(text + self._file.read())
            self._file.close()
            self._file, self._next_number = self._opened(), 1
            text = self._file.read()
        whole, newline, self._rest = text.rpartition(b"\n")
        yield from self._read(whole + newline)

    def _read(self, text: bytes) -> Iterator[Entry | InvalidLine]:
        first = self._next_number
        self._next_number += text.count(b"\n")
        yield from read(str(self._path), io.BytesIO(text), first)

    def _is_replaced(self) -> bool:
        """Return whether the path refers to a different file now. A missing file does not count as a different one."""
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _opened(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            detail = f"cannot be read: {error.strerror or error}"
            raise InvalidInput([invalid("FILE", str(self._path), detail)]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
