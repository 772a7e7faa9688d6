"""The outputs for records: standard output and error, and the file of whole lines that is rotated by size."""

import errno
import fcntl
import os
import select
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from webhook.audit.head import ChainHead, head_path, read_head
from webhook.audit.lines import digest
from webhook.audit.reading import is_audit_log, last_entry
from webhook.audit.record import FIRST
from webhook.audit.rotation import Retention, RotatedFiles
from webhook.documents.field import InvalidInput, invalid

FILE_MODE = 0o640  # a log shipper of the same group may read
_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not block the start

_HEAD_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_STREAM_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
_PIPE_BYTES = select.PIPE_BUF  # a pipe with room accepts this many bytes without blocking

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # a file system without locks, such as some NFS
_REMEDIES = {
    errno.ENOENT: "its folder does not exist; create it, or give another file",
    errno.ENOTDIR: "its folder is a file; give another file",
    errno.EISDIR: "is a folder; give a file in it",
    errno.EACCES: "may not be written; give this user the right to write the file and its folder, or give another file",
    errno.EPERM: "may not be written; give this user the right to write the file and its folder, or give another file",
    errno.EROFS: "the file system is read-only; mount a writable volume there, or give another file",
    errno.EWOULDBLOCK: "another process writes this file; give each replica a file of its own",
    errno.EINVAL: "is not a regular file; give a file, or - for standard output",
    errno.ENXIO: "is not a regular file; give a file, or - for standard output",
    errno.ENAMETOOLONG: "is too long a name; give another file",
    errno.ELOOP: "is a link that leads nowhere; give another file",
}


class AuditFile:
    """A file that only one process appends to.

    It is rotated at `max_bytes` (`webhook.audit.rotation`); 0 leaves rotation to other programs. If the file was moved
    or deleted, the next line creates it again, so logrotate needs no signal. `rotated` are its rotated files.
    """

    def __init__(self, path: Path, *, max_bytes: int, retention: Retention) -> None:
        """Open the file and lock it against other writers."""
        if not path.name:
            raise InvalidInput([invalid("--audit", str(path), _REMEDIES[errno.EISDIR])])
        self.path = path
        self._name = os.fspath(path)
        self._max_bytes = max_bytes
        self.rotated = RotatedFiles(path, max_bytes, retention)
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._size_bytes = 0
        self._torn = False
        self._head_descriptor = -1
        try:
            for each in (path, self.rotated.numbered(1)):
                if each.is_file() and not is_audit_log(each):
                    detail = "holds something else than audit records; give another file, or move it away"
                    raise InvalidInput([invalid("--audit", str(each), detail)])
            self._open()
        except OSError as error:
            if error.errno in _REMEDIES:
                raise InvalidInput([invalid("--audit", str(path), _REMEDIES[error.errno])]) from error

    def last_record_head(self) -> ChainHead:
        """Return the head of the last record, in this or the newest rotated file, or that of an empty chain if none."""
        for path in (self.path, self.rotated.numbered(1)):
            with suppress(OSError):
                if last := last_entry(path):
                    return ChainHead(last.record.sequence, digest(last.line))
        return ChainHead(0, FIRST)

    def kept_head(self) -> ChainHead | None:
        """Return the head in the head file, or None if there is none or it cannot be read."""
        try:
            return read_head(head_path(self.path))
        except (OSError, ValueError):
            return None

    def write_head(self, head: ChainHead) -> None:
        """Replace the head in the head file.

        Raises:
            OSError: it could not be written; the old head remains.
        """
        if self._head_descriptor < 0:
            self._head_descriptor = os.open(head_path(self.path), _HEAD_FLAGS, FILE_MODE)
        missed = b" %020d" % head.missed if head.missed else b""
        os.pwrite(self._head_descriptor, b"%020d %b%b\n" % (head.sequence, head.hash.encode(), missed), 0)

    def append(self, line: bytes) -> None:
        """Append the line and a newline.

        Raises:
            OSError: the line could not be written; no part of it is in the file.
        """
        self._reopen_if_moved()
        end = self._size_bytes
        # End a line that a crash has cut off, so that this one can be read.
        data = b"\n" + line + b"\n" if self._torn else line + b"\n"
        try:
            write_whole(self._descriptor, data)
        except OSError:
            self._truncate(end)
            raise
        self._torn = False
        self._size_bytes = end + len(data)

    def make_room(self, line_bytes: int) -> None:
        """Rotate the file if a line of this size would exceed its maximum size.

        Raises:
            OSError: the file could not be rotated; it can still be written.
        """
        if not self._max_bytes or not self._size_bytes or self._size_bytes + line_bytes + 1 <= self._max_bytes:
            return
        self._reopen_if_moved()
        fresh = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(fresh, _OPEN_FLAGS | os.O_TRUNC, FILE_MODE)
        try:
            _lock(descriptor)
            self.rotated.shift()
            fresh.replace(self.path)
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        self._use(descriptor)

    def close(self) -> None:
        """Close the file and its head file; a write opens them again."""
        for descriptor in (self._descriptor, self._head_descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._head_descriptor = -1
        self._identity = None

    def _open(self) -> None:
        descriptor = os.open(self.path, _OPEN_FLAGS, FILE_MODE)
        try:
            self._check_and_lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._use(descriptor)

    def _check_and_lock(self, descriptor: int) -> None:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        _lock(descriptor)
        if not os.path.samestat(os.fstat(descriptor), self.path.stat()):
            raise OSError(errno.EWOULDBLOCK, "another process has just rotated it")

    def _use(self, descriptor: int) -> None:
        self.close()
        status = os.fstat(descriptor)
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self._size_bytes = status.st_size
        self._torn = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"

    def _reopen_if_moved(self) -> None:
        try:
            status = os.stat(self._name)  # noqa: PTH116 - runs for every record, and Path.stat takes twice as long
        except FileNotFoundError:
            self._open()
            return
        if (status.st_dev, status.st_ino) != self._identity:
            self._open()
        else:
            self._size_bytes = status.st_size

    def _truncate(self, end: int) -> None:
        try:
            if os.fstat(self._descriptor).st_size > end:
                os.ftruncate(self._descriptor, end)
        except OSError:
            self._torn = True


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of `data`, with several calls if the system accepts only a part.

    Raises:
        OSError: nothing or only a part was written.
    """
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise


class AuditStream:
    """Standard output or standard error, to which lines are printed. A reader that stalls never blocks the writer.

    O_NONBLOCK is a property of the open file, which the process shares with its parent. Setting it on the terminal of a
    shell would break the shell's reads. A pipe or terminal is therefore opened a second time, through /proc, and only
    the second open file gets the flag. If that fails (no /proc, a pipe of another user), the stream is polled for room
    before each piece; another writer of the same pipe could take the room in between. A socket gets MSG_DONTWAIT with
    each piece. A regular file never blocks and is written directly.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._own_descriptor = -1
        self._torn = False
        self._write = self._choose_write(descriptor)

    def append(self, line: bytes) -> None:
        """Print the line; if the previous line was printed in part, end that one first.

        Raises:
            OSError: the line was not printed completely; BlockingIOError if the write would block.
        """
        data = b"\n" + line + b"\n" if self._torn else line + b"\n"
        written = 0
        try:
            while written < len(data):
                written += self._write(data[written:])
        except OSError:
            self._torn = self._torn or written > 0
            raise
        self._torn = False

    def has_room(self) -> bool:
        """Return whether a short line can be printed now without blocking."""
        return _has_room(self._descriptor)

    def close(self) -> None:
        """Close the descriptor opened here; the stream itself belongs to the process."""
        if self._own_descriptor >= 0:
            os.close(self._own_descriptor)
        self._own_descriptor = -1
        self._write = self._write_with_room

    def _choose_write(self, descriptor: int) -> Callable[[bytes], int]:
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # a closed stream: each write fails with an error
            return partial(os.write, descriptor)
        if stat.S_ISREG(mode):
            return partial(os.write, descriptor)
        if stat.S_ISSOCK(mode):
            return self._send
        try:
            self._own_descriptor = os.open(f"/proc/self/fd/{descriptor}", _STREAM_FLAGS)
        except OSError:
            return self._write_with_room
        return partial(os.write, self._own_descriptor)

    def _write_with_room(self, data: bytes) -> int:
        if not _has_room(self._descriptor):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return os.write(self._descriptor, data[:_PIPE_BYTES])

    def _send(self, data: bytes) -> int:
        stream = socket.socket(fileno=self._descriptor)
        try:
            return stream.send(data, socket.MSG_DONTWAIT)
        finally:
            stream.detach()


def _has_room(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    # An error counts as room: the write then fails at once.
    return bool(poll.poll(0))
