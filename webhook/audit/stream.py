"""Print records to standard output or standard error. A reader that stalls never blocks the writer."""

import errno
import os
import select
import socket
import stat
from collections.abc import Callable
from functools import partial

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
_PIPE_BYTES = select.PIPE_BUF  # a pipe with room accepts this many bytes without blocking


class AuditStream:
    """A stream of the process that lines are printed to.

    O_NONBLOCK is a property of the open file, which the process shares with its parent. Setting it on the terminal of
    a shell would break the shell's reads. A pipe or terminal is therefore opened a second time, through /proc, and only
    that one gets the flag. If that fails (no /proc, a pipe of another user), the stream is polled for room before each
    piece; another writer of the same pipe could take the room in between. A socket gets MSG_DONTWAIT with each piece. A
    regular file never blocks and is written directly.
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
            self._own_descriptor = os.open(f"/proc/self/fd/{descriptor}", _OPEN_FLAGS)
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
