"""The audit file: lines are put behind its end whole or not at all; it is rotated by size."""

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from webhook.audit.head import ChainHead, HeadFile, head_path, read_head
from webhook.audit.lines import last_line
from webhook.audit.rotation import Retention, RotatedFiles
from webhook.audit.statement import Dropped, Rotation
from webhook.kube.field import InvalidInput, invalid

FILE_MODE = 0o640  # a log shipper of the same group may read
_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not hold up the start

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # a file system that knows none, such as some NFS
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
    """A file that one process alone adds lines to.

    At `max_bytes` it is rotated (`webhook.audit.rotation`); 0 means that others rotate. A file that was moved away or
    deleted is made anew at the next line, so that logrotate needs no signal.
    """

    is_batch_atomic = True

    def __init__(self, path: Path, *, max_bytes: int, retention: Retention) -> None:
        """Open the file and hold it against other writers.

        Raises:
            InvalidInput: the file cannot be used, for a reason that does not pass by itself. A full disk does: the
                lines are refused until it has room again.
        """
        self.path = path
        self._name = os.fspath(path)
        self._max_bytes = max_bytes
        self._rotated = RotatedFiles(path, max_bytes, retention)
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._size_bytes = 0
        self._torn = False
        self._head_file = HeadFile(head_path(path), FILE_MODE)
        try:
            self._open()
        except OSError as error:
            if error.errno in _REMEDIES:
                raise InvalidInput([invalid("--audit", str(path), _REMEDIES[error.errno])]) from error

    def last_line(self) -> bytes | None:
        """The last line, here or in the newest rotated file, that holds a record."""
        for path in (self.path, self._rotated.numbered(1)):
            try:
                if line := last_line(path):
                    return line
            except OSError:
                continue
        return None

    def last_head(self) -> ChainHead | None:
        """The head that was kept at the last record; None if there is none that can be read."""
        try:
            return read_head(head_path(self.path))
        except (OSError, ValueError):
            return None

    def keep_head(self, head: ChainHead) -> None:
        """Note which record is the last.

        Raises:
            OSError: it could not be noted.
        """
        self._head_file.write(head)

    def append(self, line: bytes) -> None:
        """Put the line and a newline behind the file's end.

        Raises:
            OSError: the line is not in the file, nor a part of it.
        """
        self._follow()
        end = self._size_bytes
        # A line that was cut off (by a crash) is closed, so that this one can be read.
        data = b"\n" + line + b"\n" if self._torn else line + b"\n"
        try:
            _write_whole(self._descriptor, data)
        except OSError:
            self._take_back(end)
            raise
        self._torn = False
        self._size_bytes = end + len(data)

    def make_room(self, line_bytes: int) -> None:
        """Rotate the file if a line of this size would make it larger than it may be.

        Raises:
            OSError: it could not be rotated; it can be written all the same.
        """
        if not self._max_bytes or not self._size_bytes or self._size_bytes + line_bytes + 1 <= self._max_bytes:
            return
        self._follow()
        fresh = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(fresh, _OPEN_FLAGS | os.O_TRUNC, FILE_MODE)
        try:
            _lock(descriptor)
            self._rotated.shift()
            fresh.replace(self.path)
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        self._adopt(descriptor)

    def rotation(self) -> Rotation | None:
        """Return what the next record says of the rotated files, if they changed.

        Raises:
            OSError: they cannot be read.
        """
        return self._rotated.statement()

    def drop(self, *, stated: bool) -> Sequence[Dropped]:
        """Delete the rotated files that `rotation` said are dropped; `stated`: a record that says so was written.

        Raises:
            OSError: one could not be deleted.
        """
        return self._rotated.drop(stated=stated)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._identity = None
        self._head_file.close()

    def _open(self) -> None:
        descriptor = os.open(self.path, _OPEN_FLAGS, FILE_MODE)
        try:
            self._hold(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._adopt(descriptor)

    def _hold(self, descriptor: int) -> None:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        _lock(descriptor)
        if not os.path.samestat(os.fstat(descriptor), self.path.stat()):
            raise OSError(errno.EWOULDBLOCK, "another process has just rotated it")

    def _adopt(self, descriptor: int) -> None:
        self.close()
        status = os.fstat(descriptor)
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self._size_bytes = status.st_size
        self._torn = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"

    def _follow(self) -> None:
        """Open the file anew if it is no longer the one at the path."""
        try:
            status = os.stat(self._name)  # noqa: PTH116 - for every record, and a path's own takes twice as long
        except FileNotFoundError:
            self._open()
            return
        if (status.st_dev, status.st_ino) != self._identity:
            self._open()
        else:
            self._size_bytes = status.st_size

    def _take_back(self, end: int) -> None:
        try:
            if os.fstat(self._descriptor).st_size > end:
                os.ftruncate(self._descriptor, end)
        except OSError:
            self._torn = True


def _write_whole(descriptor: int, data: bytes) -> None:
    """Write all of `data`, in several goes where the system takes a part.

    Raises:
        OSError: it was not written, or only a part of it.
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
