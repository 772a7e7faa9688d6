"""The head file: sequence and hash of the newest record, beside the audit file, to detect a truncated log.

`PATH.head` is one short line that is overwritten in place after each write: `00000000000000000042 HASH`. After a crash
it may lag behind the audit file, but it is never ahead of it. While records cannot be written, a third field counts
those that went to standard error, so that the next process neither gives their numbers again nor hides the gap. A full
disk mostly takes this line: its blocks are there.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".head"

# The end of a longer line can be left behind a shorter one.
_LINE = re.compile(r"(\d{20}) ([0-9a-f]{64})(?: (\d{20}))?\n(?:\d{20}\n)?")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class ChainHead(NamedTuple):
    """Sequence and hash of the newest record, and how many records after it could not be written."""

    sequence: int
    hash: str
    missed: int = 0


class HeadFile:
    """The head file of one audit file, used by its writer."""

    def __init__(self, path: Path, mode: int) -> None:
        self._path = path
        self._mode = mode
        self._descriptor = -1

    def read(self) -> ChainHead | None:
        """Return the saved head; None if there is none or it cannot be read."""
        try:
            return read_head(self._path)
        except (OSError, ValueError):
            return None

    def write(self, head: ChainHead) -> None:
        """Replace the saved head by `head`.

        Raises:
            OSError: it could not be written; the old head remains.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, _FLAGS, self._mode)
        missed = b" %020d" % head.missed if head.missed else b""
        os.pwrite(self._descriptor, b"%020d %b%b\n" % (head.sequence, head.hash.encode(), missed), 0)

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def head_path(path: Path) -> Path:
    """Return the path of the head file of the audit file at `path`."""
    return path.with_name(path.name + SUFFIX)


def read_head(path: Path) -> ChainHead | None:
    """Return the head in the head file at `path`; None if the file is missing or empty.

    Raises:
        ValueError: the file holds something else.
        OSError: the file cannot be read.
    """
    try:
        return parse_head(path.read_bytes()[:200])
    except FileNotFoundError:
        return None


def parse_head(content: bytes) -> ChainHead | None:
    """Return the head in the content of a head file; None if it is empty.

    Raises:
        ValueError: it is something else.
    """
    if not content:
        return None
    line = _LINE.fullmatch(content.decode("utf-8", "replace"))
    if not line:
        raise ValueError("holds no sequence and hash")
    return ChainHead(int(line[1]), line[2], int(line[3] or 0))
