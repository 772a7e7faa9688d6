"""The audit log of one process: each record is chained to the one before it and written when `write` returns."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self, TypeVar

import structlog

from webhook.audit.file import AuditFile, AuditStream
from webhook.audit.head import ChainHead
from webhook.audit.lines import UnsealedRecord, seal
from webhook.audit.omitted import OmittedDryRuns, record_of
from webhook.audit.record import FIRST, AuditRecord, Dropped, Omitted, Rotation
from webhook.audit.rotation import Retention, RotatedFiles

Argument = TypeVar("Argument")
Done = TypeVar("Done")
Result = Literal["written", "failed", "omitted"]

STANDARD_OUTPUT = "-"
MAX_BYTES = 100 * 1024 * 1024
BACKUPS = 10
KEEP_SECONDS = 24 * 3600.0
MAX_TOTAL_BYTES = 4 * 1024 * 1024 * 1024
SHARE_BYTES = 16 * 1024 * 1024
"""The bytes that a namespace writes through one address in ten minutes before its records become brief: 4,000 pods.

The kubelet keeps 50 MiB of what a container prints.
"""

DRY_RUN_SHARE_BYTES = 1024 * 1024
"""The bytes that dry runs of a namespace write through one address in ten minutes before they are only counted.

No quota limits them. These are about 1,000 records.
"""

# Only an API server verifies that a namespace exists. Another client can invent any number of them.
_MOST_SHARES = 4096

# The part of an RFC 3339 time up to the tens of minutes.
_WINDOW = len("2026-01-31T12:0")
_MINUTE = len("2026-01-31T12:00")

_WRITE_FAILS = "audit records cannot be written and go to standard error"
_LACKS_RECORDS = "audit file lacks records that were written"
_LEFT_OUT = "audit records went to standard error before this start"
_HEAD_FAILS = "audit head cannot be kept"
_ROTATION_FAILS = "audit file cannot be rotated and keeps growing"
_DROPPING_FAILS = "rotated audit files cannot be dropped"


class AuditWriter:
    """Writes records to a file, or to standard output for `-`.

    `write` and `flush` never raise and never block. A record that cannot be written goes to standard error instead; if
    standard error would block, the record is lost. The next record is tried again:

        writing --write fails: error logged once--> failing --write succeeds: warning logged--> writing

    Both messages are logged when standard error has room, otherwise with a later record.

    The records of dry runs are brief, and so are the records of a namespace that exceeds its share. Otherwise a user
    could fill the log with small pods until rotation drops the records of other users. Dry runs have a separate share.
    Dry runs beyond it have no record each; one record a minute counts them. Shares are counted for each namespace and
    client address, so a client with forged reviews does not use up the share of an API server.

    "Written" means handed to the operating system: a crash of this process loses no record, but a crash of the machine
    can. Not thread-safe, because the chain has a single end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        backups: int = BACKUPS,
        keep_seconds: float = KEEP_SECONDS,
        max_total_bytes: int | None = None,
        now: Callable[[], str] | None = None,
        replica: str = "",
        on_result: Callable[[Result], None] = lambda _: None,
        on_dropped: Callable[[Dropped], None] = lambda _: None,
        output_descriptor: int = 1,
        error_descriptor: int = 2,
    ) -> None:
        """Open `path` and continue the chain that it holds.

        `on_result` receives the result of each record, `on_dropped` the files that rotation deleted. `max_total_bytes`
        defaults to `MAX_TOTAL_BYTES` or, if that is larger, to the size of `backups` files and the current one. `now`
        and `replica` are the time and the name of the replica in the records that the writer adds itself
        (`webhook.audit.omitted`); without `now`, it adds none.

        Raises:
            InvalidInput: the file cannot be used, or another process writes to it.
        """
        self.path = os.fspath(path)
        # Printed lines cannot be taken back or continued, so everything but `append` and `close` is of a file.
        self._file: AuditFile | None = None
        if self.path != STANDARD_OUTPUT:
            total_bytes = max_total_bytes or max(MAX_TOTAL_BYTES, (backups + 1) * max_bytes)
            retention = Retention(backups, keep_seconds, total_bytes)
            self._file = AuditFile(Path(self.path), max_bytes=max_bytes, retention=retention)
        self._output = self._file or AuditStream(output_descriptor)
        self._on_result = on_result
        self._on_dropped = on_dropped
        self._fallback = AuditStream(error_descriptor)
        self._log = structlog.get_logger()
        self._lost_records = 0
        # The failures that were logged, until the operation succeeds.
        self._failing: set[str] = set()
        end = self._chain_end()
        self._missed = end.missed
        self._sequence, self._head = end.sequence + end.missed, end.hash
        self._staged: list[bytes] = []
        self._staged_head = self._head
        self._records_rotation = False
        # By the address of the client, namespace, and whether it is a dry run, in the ten minutes `_window`.
        self._written_bytes: dict[tuple[str, str, bool], int] = {}
        self._window = self._omitted_minute = ""
        self._omitted = OmittedDryRuns()
        self._now, self._replica = now, replica
        # The records after the last one in the file went to standard error. The staged record counts these.
        self._stated = self._missed
        if self._missed:
            self._state(Omitted("unwritable", self._missed, before=self._sequence + 1))
            self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> str:
        """Return the hash of the last record written. `verify --head` uses it later to detect missing records."""
        return self._head

    def write(self, record: AuditRecord | UnsealedRecord) -> None:
        """Write the record to the file before returning. If this fails, print, count and log it."""
        self.stage(record)
        self.flush()

    def stage(self, record: AuditRecord | UnsealedRecord) -> None:
        """Stage the record for the next `flush`, which writes all staged records at about the cost of one.

        A record for standard output is printed at once, because printing several could lose only some of them.
        """
        if record.time[:_WINDOW] != self._window:
            self._window = record.time[:_WINDOW]
            self._written_bytes.clear()
        if self._omitted.by_namespace and record.time[:_MINUTE] != self._omitted_minute:
            self._state(self._omitted.take())
        request, address = (record.request, record.address) if isinstance(record, UnsealedRecord) else (record, "")
        share = address, request.namespace, request.dry_run
        written_bytes = self._written_bytes.get(share, 0)
        if request.dry_run and written_bytes > DRY_RUN_SHARE_BYTES:
            self._omitted_minute = record.time[:_MINUTE]
            self._omitted.count(request.namespace)
            self._on_result("omitted")
            return
        self._sequence += 1
        rotation: Rotation | None = None
        # A statement is not on record yet if its record could not be sealed.
        if self._file is not None and not self._staged and (self._file.rotated.is_due or self._records_rotation):
            rotation = self._rotation(self._file.rotated)
        is_brief = request.dry_run or written_bytes > SHARE_BYTES
        line, self._staged_head = seal(record, self._sequence, self._staged_head, rotation, is_brief=is_brief)
        self._written_bytes[share] = written_bytes + len(line)
        if len(self._written_bytes) > _MOST_SHARES:
            self._evict_smallest_shares()
        self._staged.append(line)
        if self._file is None:
            self.flush()

    def _state(self, omitted: Omitted) -> None:
        if self._now is not None:
            self.stage(record_of(omitted, self._now(), self._replica, self._sequence + 1))

    def _evict_smallest_shares(self) -> None:
        by_size = sorted(self._written_bytes, key=self._written_bytes.__getitem__)
        for share in by_size[: len(by_size) // 2]:
            del self._written_bytes[share]

    def flush(self) -> None:
        """Write the staged records to the file before returning, as `write` does."""
        if not self._staged:
            return
        lines, self._staged = self._staged, []
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        if self._file is not None:
            self._attempt(_ROTATION_FAILS, self._file.make_room, len(data))
        try:
            self._output.append(data)
        except OSError as error:
            self._miss(lines, error)
            return
        missed, stated, self._missed, self._stated = self._missed, self._stated, 0, 0
        self._head = self._staged_head
        if self._file is not None:
            self._attempt(_HEAD_FAILS, self._file.write_head, ChainHead(self._sequence, self._head))
            if self._records_rotation:
                self._drop(recorded=True)
        if self._lost_records and self._fallback.has_room():
            self._log.warning("audit records are written again", path=self.path, missed=self._lost_records)
            self._lost_records = 0
            self._failing.discard(_WRITE_FAILS)
        for _ in lines:
            self._on_result("written")
        if missed > stated:
            self._state(Omitted("unwritable", missed, before=self._sequence - len(lines) + 1))
            self.flush()

    def _miss(self, lines: Sequence[bytes], error: OSError) -> None:
        self._staged_head = self._head
        for line in lines:
            self._write_to_standard_error(line, error)
        self._missed += len(lines)
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write_head(ChainHead(self._sequence - self._missed, self._head, self._missed))
        # The disk may be full. The next record lists the remaining files.
        self._drop(recorded=False)

    def close(self) -> None:
        """Write the staged records and close the file, so that another process may write to it."""
        if self._omitted.by_namespace:
            self._state(self._omitted.take())
        self.flush()
        self._output.close()
        self._fallback.close()

    def _chain_end(self) -> ChainHead:
        """Return sequence and hash of the record before the next one.

        If records that were written are missing from the file, this is the last record written, not the last record in
        the file, so that the gap stays detectable.
        """
        if self._file is None:
            return ChainHead(0, FIRST)
        found, kept = self._file.last_record_head(), self._file.kept_head()
        if kept is not None and kept.hash == found.hash and kept.missed:
            self._log.warning(_LEFT_OUT, path=self.path, last=found.sequence, missed=kept.missed)
            return found._replace(missed=kept.missed)
        if kept is None or kept.sequence < found.sequence or kept.hash == found.hash:
            return found
        self._log.error(_LACKS_RECORDS, path=self.path, last=found.sequence, last_written=kept.sequence)
        return kept

    def _rotation(self, files: RotatedFiles) -> Rotation | None:
        try:
            rotation = files.statement()
        except OSError as error:
            # Only a deletion ends this outage.
            self._log_failure(_DROPPING_FAILS, error)
            return None
        self._records_rotation = True
        return rotation

    def _drop(self, *, recorded: bool) -> None:
        self._records_rotation = False
        if self._file is None:
            return
        for dropped in self._attempt(_DROPPING_FAILS, self._file.rotated.drop, recorded) or ():
            self._on_dropped(dropped)
            if self._fallback.has_room():
                is_due = dropped.reason == "age"
                log = self._log.info if is_due else self._log.warning
                early = "audit files were dropped early because of the total size"
                what = {key: value for key, value in asdict(dropped).items() if key != "reason"}
                log("old audit files were dropped" if is_due else early, path=self.path, **what)

    def _attempt(self, failure: str, action: Callable[[Argument], Done], argument: Argument) -> Done | None:
        """Return the result of an action on the file, or None if it fails. Only a first failure is logged."""
        try:
            done = action(argument)
        except OSError as error:
            self._log_failure(failure, error)
            return None
        self._failing.discard(failure)
        return done

    def _log_failure(self, failure: str, error: OSError) -> None:
        # Logs go to standard error and would block there, unlike a record.
        if failure not in self._failing and self._fallback.has_room():
            self._failing.add(failure)
            self._log.error(failure, path=self.path, error=str(error))

    def _write_to_standard_error(self, line: bytes, error: OSError) -> None:
        self._lost_records += 1
        self._log_failure(_WRITE_FAILS, error)
        # If standard error is full or broken too, the record is lost.
        with contextlib.suppress(OSError):
            self._fallback.append(line)
        self._on_result("failed")
