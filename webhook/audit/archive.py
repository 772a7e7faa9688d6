"""An audit file, its rotated files and its head file as one tar archive, to read them on another machine.

The head comes first, then the pods, then the files, the newest first: an archive that ends too early lacks the oldest
records.
"""

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, BinaryIO

from webhook.audit.file import FILE_MODE
from webhook.audit.head import SUFFIX, head_path
from webhook.audit.pods import SUFFIXES, pods_paths
from webhook.audit.reading import last_entry, rotated_files
from webhook.audit.record import LARGEST_BYTES, moment
from webhook.documents.field import InvalidInput, invalid

_BLOCK_BYTES = tarfile.BLOCKSIZE
_COPY_BYTES = 64 * 1024
_MOST_NAME_BYTES = 90  # of the audit file; a header holds a hundred bytes, with `.pods.old` behind it
_MOST_FILES = 1100
_MOST_TRIES = 10
_AGAIN = "read or copy it again"
_MAGIC, _MAGIC_OFFSET = b"ustar", 257
_COMPARE = "run `audit export` in its container to see what it prints, and compare its image with that of the others"
# Records stand in the order of their answers, and have the times of their requests.
_LONGEST_ADMISSION = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: its name, and where its bytes are. Of one that is cut off, these are whole lines."""

    name: str
    offset: int
    size_bytes: int
    is_whole: bool = True


def write_archive(path: Path, output: IO[bytes], since: datetime | None = None) -> None:
    """Write the audit file at `path` as an archive; with `since`, without rotated files that end before.

    A server may write and rotate the file meanwhile: the archive holds what the files held at the beginning.

    Raises:
        InvalidInput: there is no such file, or its name is too long.
        OSError: a file cannot be read, or `output` cannot be written.
    """
    if len(os.fsencode(path.name)) > _MOST_NAME_BYTES:
        raise InvalidInput([invalid("FILE", path.name, f"must have at most {_MOST_NAME_BYTES} bytes")])
    missing = invalid("FILE", str(path), "there is no such file; give the FILE of `serve --audit`")
    if not path.name:  # a folder, such as `.`
        raise InvalidInput([missing])
    head = b""
    with ExitStack() as stack:
        # Before the records: a running server writes the record first, then the head.
        with suppress(FileNotFoundError):
            head = head_path(path).read_bytes()
        files = _opened(path, since, stack)
        if not files:
            raise InvalidInput([missing])
        if head:
            _write(output, head_path(path).name, len(head), io.BytesIO(head))
        for pods in pods_paths(path):
            # After the records are open, so that it has the pods of all of them.
            with suppress(FileNotFoundError), pods.open("rb") as kept:
                _write(output, pods.name, os.fstat(kept.fileno()).st_size, kept)
        for name, file in files:
            _write(output, name, os.fstat(file.fileno()).st_size, file)
    output.write(bytes(2 * _BLOCK_BYTES))


def _opened(path: Path, since: datetime | None, stack: ExitStack) -> list[tuple[str, BinaryIO]]:
    """Open the files, the newest first: each once, and all of one moment, though a rotation renames them.

    Raises:
        OSError: a file cannot be opened, or the names change all the time.
    """
    for _ in range(_MOST_TRIES):
        files: list[tuple[str, BinaryIO]] = []
        with ExitStack() as attempt, suppress(FileNotFoundError):
            names = rotated_files(path)
            for file in map(Path, reversed(names)):
                last = last_entry(file) if since and file != path else None
                if since and last and moment(last.record.time) < since - _LONGEST_ADMISSION:
                    break
                files.append((file.name, attempt.enter_context(file.open("rb"))))
            places = ((path.with_name(name).stat(), os.fstat(file.fileno())) for name, file in files)
            if names == rotated_files(path) and all(os.path.samestat(*each) for each in places):
                stack.push(attempt.pop_all())
                return files
    raise OSError(f"{path} is rotated faster than its files can be opened")


def _write(output: IO[bytes], name: str, size_bytes: int, file: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, FILE_MODE
    output.write(member.tobuf(tarfile.GNU_FORMAT))
    left = size_bytes
    while left:
        # A line that did not fit the disk is taken back: empty lines are no records.
        data = file.read(min(left, _COPY_BYTES)) or b"\n" * min(left, _COPY_BYTES)
        output.write(data)
        left -= len(data)
    output.write(bytes(-size_bytes % _BLOCK_BYTES))


def is_archive(path: Path) -> bool:
    """Return whether there is a file at `path` that begins like an archive; false if it cannot be read."""
    try:
        # Not of a pipe, whose bytes can be read once.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(_BLOCK_BYTES)[_MAGIC_OFFSET:].startswith(_MAGIC)
    except OSError:
        return False


class Archive:
    """An archive on disk, which is not trusted: the files, the oldest first, and the contents of the head files.

    `pods` are the files of the pods.

    `problem` states why it may lack files or their ends, with a remedy; empty if it is whole.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read the headers of `file`, which stays the caller's."""
        self._file = file
        self.heads: dict[str, bytes] = {}
        self.members: list[Member] = []
        self.pods: list[Member] = []
        try:
            for member in _members(file):
                if member.name.endswith(SUFFIX):
                    size_bytes = min(member.size_bytes, _BLOCK_BYTES)
                    self.heads[member.name] = os.pread(file.fileno(), size_bytes, member.offset)
                elif member.name.endswith(SUFFIXES):
                    self.pods.append(member)
                else:
                    self.members.append(member)
            self.problem = "" if self.members else _no_archive("it holds none")
        except ValueError as error:
            self.problem = str(error)
        if self.problem and not any(member.is_whole and member.size_bytes for member in self.members):
            # The newest record is in none of them, as far as they were read.
            self.heads.clear()
        self.members.reverse()

    def open(self, member: Member) -> io.BufferedReader:
        """Open a member for reading."""
        return io.BufferedReader(_Section(self._file.fileno(), member))


class _Section(io.RawIOBase):
    """The bytes of a member, read without moving the position of the file."""

    def __init__(self, descriptor: int, member: Member) -> None:
        self._descriptor = descriptor
        self._position = member.offset
        self._end = member.offset + member.size_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # the base class takes any buffer
        count = min(len(buffer), self._end - self._position)
        data = os.pread(self._descriptor, count, self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _members(file: BinaryIO) -> Iterator[Member]:
    """Yield the members until the end of the file. Headers without extensions alone are read, which bounds memory.

    Raises:
        ValueError: a header is not one of `write_archive`, or the file ends early, perhaps within the last member.
    """
    end = os.fstat(file.fileno()).st_size
    position = count = 0
    while any(block := os.pread(file.fileno(), _BLOCK_BYTES, position)) and len(block) == _BLOCK_BYTES:
        header = _header(block)
        if count == _MOST_FILES:
            raise ValueError(_no_archive(f"it holds more than {_MOST_FILES}"))
        count += 1
        position += _BLOCK_BYTES
        if header.size > end - position:
            yield Member(header.name, position, _whole_lines(file, position, end), is_whole=False)
            raise ValueError(f"it ends within {header.name!r}; {_AGAIN}")
        yield Member(header.name, position, header.size)
        position += header.size + -header.size % _BLOCK_BYTES
    if len(block) < _BLOCK_BYTES:
        raise ValueError(f"it ends early; {_AGAIN}")


def _whole_lines(file: BinaryIO, start: int, end: int) -> int:
    """Return the size of the whole lines between the two positions, if each line can be a record."""
    tail = os.pread(file.fileno(), min(end - start, LARGEST_BYTES), max(start, end - LARGEST_BYTES))
    return end - start - len(tail) + tail.rfind(b"\n") + 1


def _header(block: bytes) -> tarfile.TarInfo:
    """Return the header of a regular file, whose name is no path.

    Raises:
        ValueError: it is something else.
    """
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError as error:
        raise ValueError(_no_archive(str(error))) from error
    if not header.isreg() or "/" in header.name or header.size < 0:
        raise ValueError(_no_archive(f"it holds {header.name!r}"))
    return header


def _no_archive(reason: str) -> str:
    return f"no archive of audit files: {reason}; {_COMPARE}"
