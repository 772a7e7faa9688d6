"""The rotated files of one audit log: `PATH.1` is the newest. The oldest are dropped by age and by size."""

import glob
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from webhook.audit.reading import first_record, last_entry
from webhook.audit.record import Dropped, DropReason, Oldest, Rotation

_MOST_FILES = 1000
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retention:
    """The rotated files to keep: the newest `backups`, and those younger than `keep_seconds`.

    All files together, including the current one, take at most `max_total_bytes`. If they take more, the oldest file is
    dropped regardless of its age.
    """

    backups: int
    keep_seconds: float
    max_total_bytes: int


class _File(NamedTuple):
    path: Path
    status: os.stat_result


class RotatedFiles:
    """The rotated files of the log at `path`.

    A record lists the files to drop (`statement`) before they are deleted (`drop`), unless the record cannot be
    written. So a reader of the chain can distinguish a dropped file from one that somebody removed.
    """

    def __init__(self, path: Path, max_bytes: int, retention: Retention) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._retention = retention
        self.is_due = False
        """True if the next record has to list the files, because a rotation has changed them."""
        self._statement: Rotation | None = None
        # By inode: another rotation may rename the files before a record lists them.
        self._to_drop: dict[int, DropReason] = {}

    def shift(self) -> None:
        """Rename `PATH` to `PATH.1`, `PATH.1` to `PATH.2`, and so on.

        Raises:
            OSError: a file could not be renamed; no file is lost.
        """
        last = 0
        while (rotated := self.numbered(last + 1)).exists():
            if not rotated.is_file():
                raise IsADirectoryError(f"{rotated} is not a file")
            last += 1
        for number in range(last, -1, -1):
            self.numbered(number).replace(self.numbered(number + 1))
        self.is_due = True

    def numbered(self, number: int) -> Path:
        """Return `PATH.number`; `PATH` itself for 0."""
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def statement(self) -> Rotation | None:
        """Return the rotation entry of the next record, or None if there was no rotation.

        Raises:
            OSError: the files cannot be listed or read.
        """
        if self.is_due:
            files = self._oldest_first()
            to_drop = list(self._beyond_retention(files))
            kept = [*(file.path for file in files[len(to_drop) :]), self._path]
            oldest = first_record(kept[0])
            self._to_drop = {file.status.st_ino: reason for file, reason in to_drop}
            begins = Oldest(oldest.sequence, oldest.previous) if oldest else None
            self._statement = Rotation(begins, tuple(_dropped(to_drop)))
            self.is_due = False
        return self._statement

    def drop(self, recorded: bool) -> tuple[Dropped, ...]:
        """Delete the files that the last statement lists, and return the deleted files, one entry for each reason.

        `recorded` is true if a record with the statement was written. If it is false, the next record gets a new
        statement.

        Raises:
            OSError: a file could not be deleted.
        """
        if not recorded and self._statement is not None:
            self.is_due = True
        to_drop, self._to_drop, self._statement = self._to_drop, {}, None
        if not to_drop:
            return ()
        files = [(file, to_drop[file.status.st_ino]) for file in self._oldest_first() if file.status.st_ino in to_drop]
        dropped = tuple(_dropped(files))
        for file, _ in files:
            file.path.unlink(missing_ok=True)
        return dropped

    def _oldest_first(self) -> list[_File]:
        prefix = f"{self._path.name}."
        suffixes = [entry.name.removeprefix(prefix) for entry in self._path.parent.glob(f"{glob.escape(prefix)}*")]
        paths = [
            self.numbered(number) for number in sorted(map(int, filter(_NUMBER.fullmatch, suffixes)), reverse=True)
        ]
        return [_File(path, path.stat()) for path in paths if path.is_file()]

    def _beyond_retention(self, files: list[_File]) -> Iterator[tuple[_File, DropReason]]:
        kept, now_seconds = self._retention, time.time()
        total_bytes = self._max_bytes + sum(file.status.st_size for file in files)
        for left, file in zip(range(len(files), 0, -1), files, strict=True):
            if left > kept.backups and now_seconds - file.status.st_mtime >= kept.keep_seconds:
                yield file, "age"
            elif total_bytes > kept.max_total_bytes or left > _MOST_FILES:
                yield file, "size"
            else:
                return
            total_bytes -= file.status.st_size


def _dropped(files: Sequence[tuple[_File, DropReason]]) -> Iterator[Dropped]:
    """Yield one entry for each reason to drop `files`, which are in order, the oldest first."""
    for reason in dict.fromkeys(reason for _, reason in files):
        chosen = [file for file, each in files if each == reason]
        ends = ((first_record(file.path), last_entry(file.path)) for file in chosen)
        known = [(first, last.record) for first, last in ends if first and last]
        counts = [last.sequence - first.sequence + 1 for first, last in known]
        yield Dropped(
            reason,
            files=len(chosen),
            bytes=sum(file.status.st_size for file in chosen),
            records=sum(counts) if len(known) == len(chosen) else None,
            first=known[0][0].time if known else None,
            last=known[-1][1].time if known else None,
        )
