"""The pods of an audit file, in `FILE.pods`: the recorded part of each distinct pod, to replay its admission.

A line is `{"pod":"DIGEST","content":…}`, and the digest is the SHA-256 of the content. The record of an admission names
the digest of its pod, so the chain of records covers the pods. A full file replaces `FILE.pods.old`. Together the two
files take at most twice `max_bytes`.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from webhook.audit.file import FILE_MODE, write_whole
from webhook.audit.head import REMEDY
from webhook.audit.reading import Entry, InvalidLine
from webhook.documents.field import FieldError, InvalidInput, invalid, required

SUFFIX, OLD_SUFFIX = ".pods", ".pods.old"
SUFFIXES = (SUFFIX, OLD_SUFFIX)
MAX_BYTES = 64 * 1024 * 1024
LARGEST_POD_BYTES = 32 * 1024
"""A larger pod is not kept."""

_KEY, _CONTENT, _END = b'{"pod":"', b'","content":', b"}\n"
_DIGEST_BYTES = 64
_START = len(_KEY) + _DIGEST_BYTES + len(_CONTENT)
_MOST_LINE_BYTES = _START + LARGEST_POD_BYTES + len(_END)
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_TORN = "torn: the process ended, or the disk was full, while this line was written; delete it"


def pods_paths(path: Path) -> tuple[Path, Path]:
    """Return the files with the pods of the audit file at `path`: the older one, and the current one."""
    return path.with_name(path.name + OLD_SUFFIX), path.with_name(path.name + SUFFIX)


def pods_beside(path: Path) -> tuple[Path, Path]:
    """Return the older and the current file of pods for an audit file or one of its rotated files."""
    return pods_paths(path.with_suffix("") if path.suffix[1:].isdecimal() else path)


class PodFile:
    """The writer of `FILE.pods` of the audit file at `path`, which only one process writes.

    `put` never raises. The first of several failures is reported to `on_failure`, and the next pod is tried again.
    `era` increases whenever a new, empty file is started.
    """

    def __init__(
        self, path: Path, max_bytes: int = MAX_BYTES, on_failure: Callable[[OSError], None] = lambda _: None
    ) -> None:
        """Open the file."""
        self._old, self._path = pods_paths(path)
        self._max_bytes = max_bytes
        self._on_failure = on_failure
        self._known: set[str] = set()
        self._size_bytes = 0
        self._is_torn = self._fails = False
        self.era = 0
        try:
            self._descriptor = os.open(self._path, _FLAGS, FILE_MODE)
            self._read()
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise InvalidInput([invalid("--audit-pods", str(self._path), problem)]) from error

    def _read(self) -> None:
        with self._path.open("rb") as file:
            for _, line in _lines(file):
                self._is_torn = not line.endswith(b"\n")
                if not line.startswith(_KEY[: len(line)]):
                    detail = "holds something else than pods; give another --audit FILE, or move it away"
                    raise InvalidInput([invalid("--audit-pods", str(self._path), detail)])
                if found := _parsed(line):
                    self._known.add(found[0])
                self._size_bytes += len(line)

    def put(self, content: bytes) -> str:
        """Write `content` unless the file has it. Return its digest, or "" if it is too large or cannot be written."""
        if len(content) > LARGEST_POD_BYTES:
            return ""
        digest = hashlib.sha256(content).hexdigest()
        if digest in self._known:
            return digest
        line = b"%b%b%b%b%b" % (_KEY, digest.encode(), _CONTENT, content, _END)
        try:
            if self._size_bytes and self._size_bytes + len(line) > self._max_bytes:
                self._change_file()
            self._append(b"\n" + line if self._is_torn else line)
        except OSError as error:
            if not self._fails:
                self._on_failure(error)
            self._fails = True
            return ""
        self._fails = False
        self._known.add(digest)
        return digest

    def _change_file(self) -> None:
        with suppress(FileNotFoundError):
            self._path.replace(self._old)
        fresh = os.open(self._path, _FLAGS, FILE_MODE)
        os.close(self._descriptor)
        self._descriptor, self._size_bytes, self._is_torn = fresh, 0, False
        self._known.clear()
        self.era += 1

    def _append(self, line: bytes) -> None:
        try:
            write_whole(self._descriptor, line)
        except OSError:
            try:
                os.ftruncate(self._descriptor, self._size_bytes)
            except OSError:
                self._is_torn = True
            raise
        self._size_bytes += len(line)
        self._is_torn = False

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            os.close(self._descriptor)


class PodIndex:
    """The pods of open files, by digest. The content stays in the files, which the caller keeps open."""

    def __init__(self) -> None:
        self.faults: list[FieldError] = []
        self.has_old = False
        """True if a file was full, so that older pods can be gone."""
        # The digests with the arguments of `os.pread`: descriptor, size and offset.
        self._places: dict[str, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, name: str, file: BinaryIO) -> None:
        """Add the pods of `file`; lines that are not pods are added to `faults`."""
        self.has_old |= name.endswith(OLD_SUFFIX)
        descriptor = file.fileno()
        for number, (start, line) in enumerate(_lines(file), start=1):
            if found := _parsed(line):
                digest, content = found
                if hashlib.sha256(content).hexdigest() == digest:
                    self._places[digest] = descriptor, len(content), start + _START
                    continue
            problem = f"altered: its content is not that of its digest; {REMEDY}" if found else _TORN
            if line.strip():
                shown = line[:_DIGEST_BYTES].decode("utf-8", "replace").strip()
                self.faults.append(invalid(f"{name}:{number}", shown, problem))

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def content(self, digest: str) -> bytes | None:
        """Return the content of the pod with this digest, or None if there is none.

        Raises:
            OSError: it cannot be read.
        """
        place = self._places.get(digest)
        return None if place is None else os.pread(*place)


def _parsed(line: bytes) -> tuple[str, bytes] | None:
    """Return the digest and the content of a line, or None if the line is incomplete or not a pod."""
    digest = line[len(_KEY) : _START - len(_CONTENT)]
    if not (line.startswith(_KEY) and line[:_START].endswith(_CONTENT) and line.endswith(_END)):
        return None
    return digest.decode("ascii", "replace"), line[_START : -len(_END)]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the current lines of the file with their offsets, each cut at the size of the largest pod."""
    offset, end = 0, os.fstat(file.fileno()).st_size
    while offset < end and (line := file.readline(min(_MOST_LINE_BYTES, end - offset))):
        yield offset, line
        offset += len(line)


Lines = Iterable[Entry | InvalidLine]


def note_pods(files: Iterable[tuple[str, Lines]], places: dict[str, str]) -> Iterator[tuple[str, Lines]]:
    """Yield the files. As they are read, add to `places` each pod with the place of the first record about it."""

    def noting(lines: Lines) -> Iterator[Entry | InvalidLine]:
        for line in lines:
            if isinstance(line, Entry) and line.record.pod:
                places.setdefault(line.record.pod, line.place)
            yield line

    return ((name, noting(lines)) for name, lines in files)


def compare_pods(places: Mapping[str, str], pods: PodIndex | None) -> tuple[list[str], list[FieldError]]:
    """Return notes and faults of the pods in `places`; `pods` is None without a file of pods."""
    if pods is None:
        return ([f"{_pods(len(places))} not verified: there is no FILE.pods"] if places else []), []
    missing = [place for digest, place in places.items() if digest not in pods]
    if not missing:
        return [], pods.faults
    if pods.has_old:
        return [f"{_pods(len(missing))} gone: FILE.pods was full, and newer ones replaced them"], pods.faults
    absent = f"cut out: {_pods(len(missing))} not in FILE.pods, the first that of this record"
    return [], [*pods.faults, required(f"{missing[0]}: pod", f"{absent}; {REMEDY}")]


def _pods(number: int) -> str:
    return "1 pod that a record names is" if number == 1 else f"{number} pods that records name are"
