"""The head file: the newest record's sequence and hash, beside the audit file, so that a cut off end shows.

`PATH.head` is one short line that is overwritten in place behind each write: `00000000000000000042 HASH`. It may lag
behind the audit file by the records of a crash, never be ahead of it.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".head"

_LINE = re.compile(r"(\d{20}) ([0-9a-f]{64})\n")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class ChainHead(NamedTuple):
    """Which record was the newest."""

    sequence: int
    hash: str


class HeadFile:
    """The head file of one audit file, for its writer."""

    def __init__(self, path: Path, mode: int) -> None:
        self._path = path
        self._mode = mode
        self._descriptor = -1

    def write(self, head: ChainHead) -> None:
        """Put this head in the place of the last.

        Raises:
            OSError: it could not be written; the old one stands.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, _FLAGS, self._mode)
        os.pwrite(self._descriptor, b"%020d %b\n" % (head.sequence, head.hash.encode()), 0)

    def close(self) -> None:
        """Let go of it; the next write opens it anew."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def head_path(path: Path) -> Path:
    """Where the head of the audit file at `path` is kept."""
    return path.with_name(path.name + SUFFIX)


def read_head(path: Path) -> ChainHead | None:
    """The head in the head file at `path`; None if there is no such file, or nothing in it yet.

    Raises:
        ValueError: it holds something else.
        OSError: it cannot be read.
    """
    try:
        text = path.read_bytes()[:200].decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    if not text:
        return None
    line = _LINE.fullmatch(text)
    if not line:
        raise ValueError("holds no sequence and hash")
    return ChainHead(int(line[1]), line[2])
