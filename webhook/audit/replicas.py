"""The records of replicas that were downloaded: printed logs, and archives of audit files."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self

from webhook.audit.archive import Archive
from webhook.audit.head import ChainHead, parse_head
from webhook.audit.query import Entry, InvalidLine, read
from webhook.audit.record import BEGINNING, LARGEST_BYTES, moment
from webhook.kube.field import FieldError, invalid

_MOST_LINE_BYTES = 2 * LARGEST_BYTES
_MOST_SHOWN_BYTES = 40

Lines = Iterator[Entry | InvalidLine]


@dataclass(frozen=True, slots=True)
class Download:
    """What was downloaded of one replica into the file at `path`: its printed log, or an archive of its audit files.

    `problem` states why it was not read to its end; empty if it was.
    """

    name: str
    path: Path
    is_archive: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A log, or the audit files of a replica, that could not be read to its end, and why."""

    download: Download
    problem: str

    def __str__(self) -> str:
        what = "audit files" if self.download.is_archive else "log"
        return f"{self.download.name}: not all of its {what} was read: {self.problem}"


class ReplicaLogs:
    """The downloaded records of replicas; a context manager. In a printed log, lines that are no records are skipped.

    `heads` has the chain heads that were kept beside audit files, by the name of the head file; `head_faults` names the
    head files that hold something else. `unread` lists what is not complete, and `without_records`, once they are read,
    the logs and files that have something else than records.
    """

    def __init__(self, downloads: Iterable[Download]) -> None:
        """Open each file."""
        self.has_records = False
        self.heads: dict[str, ChainHead] = {}
        self.head_faults: list[FieldError] = []
        self.unread: list[Unread] = []
        self.without_records: list[str] = []
        self._stack = ExitStack()
        self._printed: list[tuple[str, BinaryIO]] = []
        self._files: list[tuple[str, BinaryIO]] = []
        # Files that were cut off: records are missing between them and the files of the same replica that follow.
        self._parts: list[tuple[str, BinaryIO]] = []
        for download in downloads:
            stream = self._stack.enter_context(download.path.open("rb"))
            problem = download.problem
            if download.is_archive:
                archive = Archive(stream)
                self._add(download.name, archive)
                problem = problem or archive.problem
            else:
                self._printed.append((download.name, stream))
            if problem:
                self.unread.append(Unread(download, problem))

    def _add(self, replica: str, archive: Archive) -> None:
        for member in archive.members:
            is_followed = not member.is_whole and member is not archive.members[-1]
            files = self._parts if is_followed else self._files
            files.append((f"{replica}/{member.name}", self._stack.enter_context(archive.open(member))))
        for file, content in archive.heads.items():
            name = f"{replica}/{file}"
            try:
                head = parse_head(content)
            except ValueError as error:
                shown = content[:_MOST_SHOWN_BYTES].decode("utf-8", "replace")
                detail = f"{error}, so records cut off at the end cannot be detected: compare with a copy"
                self.head_faults.append(invalid(name, shown, detail))
                continue
            if head:
                self.heads[name] = head

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def printed(self) -> Sequence[str]:
        """Return the names of the printed logs."""
        return [name for name, _ in self._printed]

    def lines(self) -> Iterator[tuple[str, Lines]]:
        """Yield the name of each log and audit file with its lines, which form chains. Can be read once."""
        for name, stream in self._printed:
            yield name, self._noted(name, _records(read(name, _cut_lines(stream))))
        yield from self._lines_of(self._files)

    def _lines_of(self, files: Sequence[tuple[str, BinaryIO]]) -> Iterator[tuple[str, Lines]]:
        for name, stream in files:
            yield name, self._noted(name, read(name, _cut_lines(stream)))

    def entries(self, on_invalid: Callable[[InvalidLine], None]) -> Iterator[Entry]:
        """Return the records of all replicas in the order of their time; lines that are none go to `on_invalid`."""

        def records(lines: Lines) -> Iterator[Entry]:
            for line in lines:
                if isinstance(line, Entry):
                    yield line
                else:
                    on_invalid(line)

        lines = [lines for _, lines in chain(self.lines(), self._lines_of(self._parts))]
        return heapq.merge(*map(records, lines), key=lambda entry: moment(entry.record.time))

    def _noted(self, name: str, lines: Lines) -> Lines:
        has_records, first_invalid = False, None
        for line in lines:
            if isinstance(line, Entry):
                self.has_records = has_records = True
            else:
                first_invalid = first_invalid or line
            yield line
        if first_invalid and not has_records and not first_invalid.cut_off:
            self.without_records.append(name)


def _records(lines: Lines) -> Lines:
    """Leave out the lines that do not begin like a record: the log of the server is in the same stream."""
    return (line for line in lines if line.line.startswith(BEGINNING))


def _cut_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, each cut at twice the size of the largest record."""
    while line := stream.readline(_MOST_LINE_BYTES):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(_MOST_LINE_BYTES)
