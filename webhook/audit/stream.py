"""Standard output and standard error as places for records: a reader that does not read never holds up the writer."""

import errno
import os
import select
import socket
import stat
from collections.abc import Callable, Sequence

from webhook.audit.head import ChainHead
from webhook.audit.statement import Dropped, Rotation

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
_PIPE_BYTES = select.PIPE_BUF  # a pipe that has room takes so much without waiting


class AuditStream:
    """A stream of the process as a sink: nothing to continue, to rotate or to take back.

    O_NONBLOCK belongs to the open file, which a process shares with those that it was inherited from: a shell whose
    terminal it set so would read nothing any more. So a pipe or a terminal is opened a second time, through /proc, and
    the flag set there alone. Where that cannot be (no /proc, a pipe of another user), room is asked for before each
    piece, which another writer of the same pipe could take in between. A socket is told with each piece not to wait. A
    regular file has no reader to wait for and is written as it is.
    """

    is_batch_atomic = False
    """A part of several lines that was printed cannot be taken back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._own_descriptor = -1
        self._torn = False
        self._write = self._choose_write(descriptor)

    def last_line(self) -> bytes | None:
        """None: what was printed is out of reach."""
        return None

    def last_head(self) -> ChainHead | None:
        """None: each process begins a chain."""
        return None

    def keep_head(self, head: ChainHead) -> None:
        """Nothing to do."""

    def make_room(self, line_bytes: int) -> None:
        """Nothing to do."""

    def rotation(self) -> Rotation | None:
        """None: a stream has no files."""
        return None

    def drop(self, *, stated: bool) -> Sequence[Dropped]:  # noqa: ARG002 - the sink's signature
        """Nothing to do."""
        return ()

    def append(self, line: bytes) -> None:
        """Print the line, behind the part of another that could not be printed whole.

        Raises:
            OSError: it is not there whole; BlockingIOError because it would have to be waited for.
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
        """Whether a short line can be printed now, by anybody, without waiting."""
        return _has_room(self._descriptor)

    def close(self) -> None:
        """Let go of what was opened here; the stream itself is the process's."""
        if self._own_descriptor >= 0:
            os.close(self._own_descriptor)
        self._own_descriptor = -1
        self._write = self._write_with_room

    def _choose_write(self, descriptor: int) -> Callable[[bytes], int]:
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # a closed stream: each write says so
            return self._write_plain
        if stat.S_ISREG(mode):
            return self._write_plain
        if stat.S_ISSOCK(mode):
            return self._send
        try:
            self._own_descriptor = os.open(f"/proc/self/fd/{descriptor}", _OPEN_FLAGS)
        except OSError:
            return self._write_with_room
        return self._write_to_own

    def _write_plain(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def _write_to_own(self, data: bytes) -> int:
        return os.write(self._own_descriptor, data)

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
    # An error counts as room: the write meets it at once.
    return bool(poll.poll(0))
