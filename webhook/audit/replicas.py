"""The records of replicas that were downloaded: printed logs, and archives of audit files."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from webhook.audit.archive import Archive
from webhook.audit.head import ChainHead
from webhook.audit.query import Entry, InvalidLine, read
from webhook.audit.record import BEGINNING, LARGEST_BYTES, moment
from webhook.kube.field import FieldError, InvalidInput, invalid

_MOST_LINE_BYTES = 2 * LARGEST_BYTES

Lines = Iterator[Entry | InvalidLine]


@dataclass(frozen=True, slots=True)
class Download:
    """What was downloaded of one replica into the file at `path`: its printed log, or an archive of its audit files."""

    name: str
    path: Path
    is_archive: bool


class ReplicaLogs:
    """The downloaded records of replicas; a context manager. In a printed log, lines that are no records are skipped.

    `heads` has the chain heads that were kept beside audit files, by the name of the head file.
    """

    def __init__(self, downloads: Iterable[Download]) -> None:
        """Open each file.

        Raises:
            InvalidInput: a file is no archive although it should be one.
        """
        self.has_records = False
        self.heads: dict[str, ChainHead] = {}
        self._stack = ExitStack()
        self._printed: list[tuple[str, BinaryIO]] = []
        self._files: list[tuple[str, BinaryIO]] = []
        errors: list[FieldError] = []
        for download in downloads:
            stream = self._stack.enter_context(download.path.open("rb"))
            try:
                self._add(download, stream)
            except ValueError as error:
                errors.append(invalid(download.name, str(error), "the replica must print it as `audit export` does"))
        if errors:
            self._stack.close()
            raise InvalidInput(errors)

    def _add(self, download: Download, stream: BinaryIO) -> None:
        if not download.is_archive:
            self._printed.append((download.name, stream))
            return
        archive = Archive(stream)
        for member in archive.members:
            self._files.append((f"{download.name}/{member.name}", self._stack.enter_context(archive.open(member))))
        if archive.head:
            name, head = archive.head
            self.heads[f"{download.name}/{name}"] = head

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def printed(self) -> Sequence[str]:
        """Return the names of the printed logs."""
        return [name for name, _ in self._printed]

    def lines(self) -> Iterator[tuple[str, Lines]]:
        """Yield the name of each log and audit file with its lines. Can be read once."""
        for name, stream in self._printed:
            yield name, self._noted(_records(read(name, _cut_lines(stream))))
        for name, stream in self._files:
            yield name, self._noted(read(name, _cut_lines(stream)))

    def entries(self, on_invalid: Callable[[InvalidLine], None]) -> Iterator[Entry]:
        """Return the records of all replicas in the order of their time; lines that are none go to `on_invalid`."""

        def records(lines: Lines) -> Iterator[Entry]:
            for line in lines:
                if isinstance(line, Entry):
                    yield line
                else:
                    on_invalid(line)

        return heapq.merge(*(records(lines) for _, lines in self.lines()), key=lambda entry: moment(entry.record.time))

    def _noted(self, lines: Lines) -> Lines:
        for line in lines:
            self.has_records = True
            yield line


def _records(lines: Lines) -> Lines:
    """Leave out the lines that do not begin like a record: the log of the server is in the same stream."""
    return (line for line in lines if line.line.startswith(BEGINNING))


def _cut_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, each cut at twice the size of the largest record."""
    while line := stream.readline(_MOST_LINE_BYTES):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(_MOST_LINE_BYTES)
