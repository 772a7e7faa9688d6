"""Read the lines of audit files: all of them, or only the first and the last record of a file."""

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from webhook.audit.record import BEGINNING, LARGEST_BYTES, AuditRecord, parse_line

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
    """A line that is not a record, and why. `cut_off`: the file ends within the line."""

    place: str
    line: bytes
    problem: str
    cut_off: bool


def read(name: str, stream: Iterable[bytes]) -> Iterator[Entry | InvalidLine]:
    """Yield the lines of one file, without empty ones."""
    for number, text in enumerate(stream, start=1):
        line = text.removesuffix(b"\n")
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            yield Entry(place, line, parse_line(line))
        except ValueError as error:
            yield InvalidLine(place, line, str(error), cut_off=not text.endswith(b"\n"))


def first_record(path: Path) -> AuditRecord | None:
    """Return the record in the first line, or None.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return _record(file.readline(LARGEST_BYTES + 1).removesuffix(b"\n"))


def last_entry(path: Path) -> Entry | None:
    """Return the last record that the file holds, with its line, or None.

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
    """Yield the lines of the last `_TAIL_BYTES` of a file, the last line first; that one may lack its newline."""
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
    others = path.parent.glob(f"{glob.escape(path.name)}.*")
    numbered = [(int(suffix), file) for file in others if (suffix := file.suffix[1:]).isdecimal()]
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
