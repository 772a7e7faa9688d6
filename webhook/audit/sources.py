"""Open the records of audit files or of logs that replicas printed, and read them together."""

import heapq
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from webhook.audit.head import ChainHead
from webhook.audit.pods import PodIndex, pods_beside
from webhook.audit.reading import Entry, InvalidLine, is_audit_log, read
from webhook.audit.record import BEGINNING, FIRST, LARGEST_BYTES, AuditRecord, moment
from webhook.documents.field import FieldError, InvalidInput, invalid

STANDARD_INPUT = "-"

_MOST_LINE_BYTES = 2 * LARGEST_BYTES

Lines = Iterator[Entry | InvalidLine]


@dataclass(frozen=True, slots=True)
class Download:
    """The log that one replica printed, in the file at `path`.

    `problem` is the reason why the log was not read to its end, or empty if it was.
    """

    name: str
    path: Path
    problem: str = ""


class _File(NamedTuple):
    """The lines of one file.

    `is_printed` is true if the server's log is in the same stream. `must_hold_records` is true if the user named the
    file.
    """

    name: str
    lines: Iterable[bytes]
    is_printed: bool = False
    must_hold_records: bool = False


class Sources:
    """Files of records that are open for reading; a context manager that closes them.

    `heads` are the chain heads in the head files of the audit files, by the name of the head file. `unread` lists what
    is incomplete, with the reason. While the records are read, `without_records` collects the first line of each file
    that contains anything but records, and `cut_logs` the first record of each printed log whose older records are
    lost.
    """

    def __init__(self, heads: Mapping[str, ChainHead] | None = None) -> None:
        self.heads = dict(heads or {})
        self.unread: list[str] = []
        self.without_records: dict[str, InvalidLine] = {}
        self.cut_logs: dict[str, AuditRecord] = {}
        self.has_records = False
        self._files: list[_File] = []
        self._pods: dict[str, Path] = {}
        self._stack = ExitStack()

    @classmethod
    def of_files(
        cls, names: Sequence[str], heads: Mapping[str, ChainHead] | None = None, missing: Sequence[str] = ()
    ) -> Self:
        """Open audit files; `-` is standard input. `missing` names files that do not exist and are read as empty.

        Raises:
            InvalidInput: files cannot be read or are not audit logs; lists all of them.
        """
        sources = cls(heads)
        errors: list[FieldError] = []
        for name in dict.fromkeys(names):
            try:
                sources._add_file(name, errors)
            except OSError as error:
                problem = error.strerror or type(error).__name__
                errors.append(invalid(name, problem, "give an audit file that can be read, or - for standard input"))
        if errors:
            sources._stack.close()
            raise InvalidInput(errors)
        sources._files += [_File(name, ()) for name in missing]
        return sources

    @classmethod
    def of_replicas(cls, downloads: Iterable[Download]) -> Self:
        """Open the logs of replicas."""
        sources = cls()
        for download in downloads:
            stream = sources._stack.enter_context(download.path.open("rb"))
            sources._files.append(_File(download.name, _cut_lines(stream), is_printed=True))
            if download.problem:
                sources.unread.append(f"{download.name}: not all of its log was read: {download.problem}")
        return sources

    def _add_file(self, name: str, errors: list[FieldError]) -> None:
        if name == STANDARD_INPUT:
            self._files.append(_File("<stdin>", sys.stdin.buffer, must_hold_records=True))
            return
        path = Path(name)
        stream = self._stack.enter_context(path.open("rb"))
        self._files.append(_File(name, stream, must_hold_records=True))
        self._pods |= {str(each): each for each in pods_beside(path)}
        if path.is_file() and not is_audit_log(path):
            errors.append(_no_audit_log(name))

    def index_pods(self) -> PodIndex | None:
        """Return the recorded pods of the audit files, or None if there is no file of pods.

        Call it after the records were read, because a running server writes the pod before its record.

        Raises:
            OSError: a file cannot be read.
        """
        index = None
        for name, path in self._pods.items():
            with suppress(FileNotFoundError):
                file = self._stack.enter_context(path.open("rb"))
                index = index or PodIndex()
                index.add(name, file)
        return index

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def printed(self) -> Sequence[str]:
        """Return the names of the printed logs."""
        return [file.name for file in self._files if file.is_printed]

    def lines(self) -> Iterator[tuple[str, Lines]]:
        """Yield the name of each file with its lines, which form chains. Can be read once."""
        return ((file.name, self._lines_of(file)) for file in self._files)

    def entries(self, on_invalid: Callable[[InvalidLine], None]) -> Iterator[Entry]:
        """Return the records of all files in the order of their time; lines that are not records go to `on_invalid`.

        Rotated files and the files of several replicas may be given in any order, because each file by itself is in
        order.

        Raises:
            InvalidInput: a file that the user named contains lines other than records.
        """

        def records(file: _File) -> Iterator[Entry]:
            for line in self._lines_of(file):
                if isinstance(line, Entry):
                    yield line
                else:
                    on_invalid(line)
            if file.must_hold_records and (wrong := self.without_records.get(file.name)):
                detail = "holds no audit record; give the output of `serve --audit`"
                raise InvalidInput([invalid(file.name, wrong.problem, detail)])

        return heapq.merge(*map(records, self._files), key=lambda entry: moment(entry.record.time))

    def _lines_of(self, file: _File) -> Lines:
        has_records, wrong = False, None
        for line in read(file.name, file.lines):
            if file.is_printed and not line.line.startswith(BEGINNING):
                continue
            if isinstance(line, Entry):
                if file.is_printed and not has_records and line.record.previous != FIRST:
                    self.cut_logs[file.name] = line.record
                self.has_records = has_records = True
            else:
                wrong = wrong or line
            yield line
        if wrong and not has_records and not wrong.cut_off:
            self.without_records[file.name] = wrong


def _cut_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of an untrusted stream, each cut at twice the size of the largest record."""
    while line := stream.readline(_MOST_LINE_BYTES):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(_MOST_LINE_BYTES)


def _no_audit_log(name: str) -> FieldError:
    with Path(name).open("rb") as file:
        start = file.read(60)
    if start.startswith(b"\x1f\x8b"):
        detail = "is compressed; pipe it: `zcat FILE | placement-webhook audit list -`"
        return FieldError(name, "Unsupported value", "gzip", detail)
    text = start.split(b"\n", 1)[0].decode("utf-8", "replace")
    return invalid(name, text, "holds no audit record; give the file of `serve --audit`")
