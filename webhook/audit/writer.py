"""The audit log of one process: each record is written, chained to the one before it, when `write` returns."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, Self, TextIO

import structlog

from webhook.audit.file import AuditFile, write_whole
from webhook.audit.record import FIRST, AuditRecord, digest, encode, parse_line

Result = Literal["written", "failed"]

STANDARD_OUTPUT = "-"
MAX_BYTES = 100 * 1024 * 1024
BACKUPS = 10


class Sink(Protocol):
    """Where lines go."""

    def last_line(self) -> bytes | None:
        """The last line there that holds a record."""
        ...

    def make_room(self, line_bytes: int) -> None:
        """Rotate, where a line of this size calls for it; OSError where that cannot be done."""
        ...

    def append(self, line: bytes) -> None:
        """Write the line and a newline; OSError where it is not there whole."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class AuditStream:
    """Standard output as a sink: nothing to continue, to rotate or to take back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._torn = False

    def last_line(self) -> bytes | None:
        """None: what was printed is out of reach."""
        return None

    def make_room(self, line_bytes: int) -> None:
        """Nothing to do."""

    def append(self, line: bytes) -> None:
        """Print the line, behind the part of another that could not be printed whole."""
        data = b"\n" + line + b"\n" if self._torn else line + b"\n"
        self._torn = True
        write_whole(self._descriptor, data)
        self._torn = False

    def close(self) -> None:
        """Nothing to do: the stream is the process's."""


class AuditWriter:
    """Writes records to a file, or to standard output for `-`.

    `write` never raises and never waits for room. A record that cannot be written goes to `fallback` (standard error)
    instead, the next one is tried again:

        writing --write fails: error logged once--> failing --write succeeds: warning logged--> writing

    "Written" means handed to the operating system: a crash of this process loses nothing, one of the machine can.
    Not to be shared between threads: the chain has one end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        backups: int = BACKUPS,
        on_result: Callable[[Result], None] = lambda _: None,
        fallback: TextIO | None = None,
        output_descriptor: int = 1,
    ) -> None:
        """Open `path` and continue the chain that it holds. `on_result` is told what became of each record.

        Raises:
            InvalidInput: the file cannot be used, or another process writes it.
        """
        self.path = os.fspath(path)
        self._sink: Sink
        if self.path == STANDARD_OUTPUT:
            self._sink = AuditStream(output_descriptor)
        else:
            self._sink = AuditFile(Path(self.path), max_bytes=max_bytes, backups=backups)
        self._on_result = on_result
        self._fallback = fallback
        self._log = structlog.get_logger()
        self._missed = 0
        self._rotation_fails = False
        last = self._sink.last_line()
        self._sequence = parse_line(last).sequence if last else 0
        self._head = digest(last) if last else FIRST

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> str:
        """Hash of the last record written: kept elsewhere, it proves later that none was cut off (`verify --head`)."""
        return self._head

    @property
    def failing(self) -> bool:
        """Whether the last record could not be written."""
        return self._missed > 0

    def write(self, record: AuditRecord) -> None:
        """The record is in the file when this returns; if that cannot be, on standard error, counted and logged."""
        self._sequence += 1
        line = encode(record, self._sequence, self._head)
        try:
            self._make_room(len(line))
            self._sink.append(line)
        except OSError as error:
            self._miss(line, error)
            return
        self._head = digest(line)
        if self._missed:
            self._log.warning("audit records are written again", path=self.path, missed=self._missed)
            self._missed = 0
        self._on_result("written")

    def close(self) -> None:
        """Let go of the file, so that another process may write it."""
        self._sink.close()

    def _make_room(self, line_bytes: int) -> None:
        try:
            self._sink.make_room(line_bytes)
        except OSError as error:
            if not self._rotation_fails:
                self._log.error("audit file cannot be rotated and grows on", path=self.path, error=str(error))
            self._rotation_fails = True
        else:
            self._rotation_fails = False

    def _miss(self, line: bytes, error: OSError) -> None:
        self._missed += 1
        if self._missed == 1:
            self._log.error(
                "audit records cannot be written and go to standard error", path=self.path, error=str(error)
            )
        # Nothing is left to be told to, where standard error is broken too.
        with contextlib.suppress(OSError, ValueError):
            fallback = self._fallback or sys.stderr
            fallback.write(line.decode() + "\n")
            fallback.flush()
        self._on_result("failed")
