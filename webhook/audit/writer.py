"""The audit log of one process: each record is chained to the one before it and written when `write` returns."""

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, Self

import structlog

from webhook.audit.file import AuditFile
from webhook.audit.head import ChainHead
from webhook.audit.lines import Draft, digest, seal
from webhook.audit.record import FIRST, AuditRecord, Dropped, Rotation, parse_line
from webhook.audit.rotation import Retention
from webhook.audit.stream import AuditStream

Result = Literal["written", "failed"]

STANDARD_OUTPUT = "-"
MAX_BYTES = 100 * 1024 * 1024
BACKUPS = 10
KEEP_SECONDS = 24 * 3600.0
MAX_TOTAL_BYTES = 4 * 1024 * 1024 * 1024


class Sink(Protocol):
    """A destination of lines. `is_batch_atomic`: a batch of lines is written completely or not at all."""

    is_batch_atomic: bool

    def last_line(self) -> bytes | None:
        """Return the last line that holds a record."""
        ...

    def last_head(self) -> ChainHead | None:
        """Return the head that `keep_head` saved last, perhaps in another process."""
        ...

    def keep_head(self, head: ChainHead) -> None:
        """Save the chain head; raises OSError if that fails."""
        ...

    def make_room(self, line_bytes: int) -> None:
        """Rotate if a line of this size requires it; raises OSError if that fails."""
        ...

    def rotation(self) -> Rotation | None:
        """Return the rotation entry of the next record, if any; raises OSError if the files cannot be read."""
        ...

    def drop(self, *, recorded: bool) -> Sequence[Dropped]:
        """Delete the files that `rotation` listed; `recorded`: a record lists them. Raises OSError if that fails."""
        ...

    def append(self, line: bytes) -> None:
        """Write one line, or several separated by newlines, and a newline; raises OSError if that is incomplete."""
        ...

    def close(self) -> None:
        """Close the sink."""
        ...


class AuditWriter:
    """Writes records to a file, or to standard output for `-`.

    `write` and `flush` never raise and never block. A record that cannot be written goes to standard error instead; if
    standard error would block, the record is lost. The next record is tried again:

        writing --write fails: error logged once--> failing --write succeeds: warning logged--> writing

    Both messages are logged when standard error has room, otherwise with a later record.

    "Written" means handed to the operating system: a crash of this process loses nothing, a crash of the machine can.
    An instance is for one thread: the chain has one end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        backups: int = BACKUPS,
        keep_seconds: float = KEEP_SECONDS,
        max_total_bytes: int | None = None,
        on_result: Callable[[Result], None] = lambda _: None,
        on_dropped: Callable[[Dropped], None] = lambda _: None,
        output_descriptor: int = 1,
        error_descriptor: int = 2,
    ) -> None:
        """Open `path` and continue the chain that it holds.

        `on_result` receives the result of each record, `on_dropped` the files that rotation deleted. `max_total_bytes`
        defaults to `MAX_TOTAL_BYTES` or, if that is larger, to the size of `backups` files and the current one.

        Raises:
            InvalidInput: the file cannot be used, or another process writes to it.
        """
        self.path = os.fspath(path)
        self._sink: Sink
        if self.path == STANDARD_OUTPUT:
            self._sink = AuditStream(output_descriptor)
        else:
            total_bytes = max_total_bytes or max(MAX_TOTAL_BYTES, (backups + 1) * max_bytes)
            retention = Retention(backups, keep_seconds, total_bytes)
            self._sink = AuditFile(Path(self.path), max_bytes=max_bytes, retention=retention)
        self._on_result = on_result
        self._on_dropped = on_dropped
        self._fallback = AuditStream(error_descriptor)
        self._log = structlog.get_logger()
        self._lost_records = 0
        self._failure_is_logged = False
        self._rotation_is_failing = False
        self._dropping_is_failing = False
        self._head_is_failing = False
        self._sequence, self._head = self._chain_end()
        self._staged: list[bytes] = []
        self._staged_head = self._head
        self._records_rotation = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> str:
        """Return the hash of the last record written. `verify --head` uses it later to detect missing records."""
        return self._head

    def write(self, record: AuditRecord | Draft) -> None:
        """Write the record to the file before returning; if that fails, print, count and log it."""
        self.stage(record)
        self.flush()

    def stage(self, record: AuditRecord | Draft) -> None:
        """Stage the record for the next `flush`, which writes all staged records for little more than the cost of one.

        If the sink is not batch-atomic, the record is written at once.
        """
        self._sequence += 1
        rotation = None if self._staged else self._rotation()
        line, self._staged_head = seal(record, self._sequence, self._staged_head, rotation)
        self._staged.append(line)
        if not self._sink.is_batch_atomic:
            self.flush()

    def flush(self) -> None:
        """Write the staged records to the file before returning, as `write` does."""
        if not self._staged:
            return
        lines, self._staged = self._staged, []
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        self._make_room(len(data))
        try:
            self._sink.append(data)
        except OSError as error:
            self._staged_head = self._head
            for line in lines:
                self._write_to_standard_error(line, error)
            # The disk may be full: free room now. The next record lists the remaining files.
            self._drop(recorded=False)
            return
        self._head = self._staged_head
        self._keep_head()
        if self._records_rotation:
            self._drop(recorded=True)
        if self._lost_records and self._fallback.has_room():
            self._log.warning("audit records are written again", path=self.path, missed=self._lost_records)
            self._lost_records = 0
            self._failure_is_logged = False
        for _ in lines:
            self._on_result("written")

    def close(self) -> None:
        """Write the staged records and close the file, so that another process may write to it."""
        self.flush()
        self._sink.close()
        self._fallback.close()

    def _chain_end(self) -> tuple[int, str]:
        """Return sequence and hash of the record before the next one.

        If the file lacks records that were written, this is the last one written, not the last one left. The gap thus
        remains detectable.
        """
        line = self._sink.last_line()
        sequence, head = (parse_line(line).sequence, digest(line)) if line else (0, FIRST)
        kept = self._sink.last_head()
        if kept is None or kept.sequence < sequence or kept == ChainHead(sequence, head):
            return sequence, head
        self._log.error(
            "audit file lacks records that were written", path=self.path, last=sequence, last_written=kept.sequence
        )
        return kept.sequence, kept.hash

    def _keep_head(self) -> None:
        try:
            self._sink.keep_head(ChainHead(self._sequence, self._head))
        except OSError as error:
            if not self._head_is_failing and self._fallback.has_room():
                self._log.error("audit head cannot be kept", path=self.path, error=str(error))
                self._head_is_failing = True
        else:
            self._head_is_failing = False

    def _make_room(self, line_bytes: int) -> None:
        try:
            self._sink.make_room(line_bytes)
        except OSError as error:
            self._log_rotation_failure(error)
        else:
            self._rotation_is_failing = False

    def _rotation(self) -> Rotation | None:
        try:
            rotation = self._sink.rotation()
        except OSError as error:
            self._log_dropping_failure(error)
            rotation = None
        self._records_rotation = rotation is not None
        return rotation

    def _drop(self, *, recorded: bool) -> None:
        try:
            dropped = self._sink.drop(recorded=recorded)
        except OSError as error:
            self._log_dropping_failure(error)
            return
        self._dropping_is_failing = False
        for each in dropped:
            self._on_dropped(each)
            self._log_dropped(each)

    def _log_dropped(self, dropped: Dropped) -> None:
        if not self._fallback.has_room():
            return
        counts = {"files": dropped.files, "bytes": dropped.bytes, "records": dropped.records}
        times = {"first": dropped.first, "last": dropped.last}
        if dropped.reason == "age":
            self._log.info("old audit files were dropped", path=self.path, **counts, **times)
        else:
            event = "audit files were dropped early because of the total size"
            self._log.warning(event, path=self.path, **counts, **times)

    def _log_rotation_failure(self, error: OSError) -> None:
        if not self._rotation_is_failing and self._fallback.has_room():
            self._log.error("audit file cannot be rotated and keeps growing", path=self.path, error=str(error))
            self._rotation_is_failing = True

    def _log_dropping_failure(self, error: OSError) -> None:
        if not self._dropping_is_failing and self._fallback.has_room():
            self._log.error("rotated audit files cannot be dropped", path=self.path, error=str(error))
            self._dropping_is_failing = True

    def _write_to_standard_error(self, line: bytes, error: OSError) -> None:
        self._lost_records += 1
        # Logs go to standard error and would block there, unlike a record.
        if not self._failure_is_logged and self._fallback.has_room():
            self._failure_is_logged = True
            self._log.error(
                "audit records cannot be written and go to standard error", path=self.path, error=str(error)
            )
        # If standard error is full or broken too, the record is lost.
        with contextlib.suppress(OSError):
            self._fallback.append(line)
        self._on_result("failed")
