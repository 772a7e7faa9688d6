"""Writes the audit records of one event-loop iteration in one batch."""

import asyncio
from typing import Protocol

from webhook.audit.lines import UnsealedRecord


class StagedLog(Protocol):
    """An audit log that stages records and writes them in one batch. Neither method raises if a write fails."""

    def stage(self, record: UnsealedRecord) -> None:
        """Keep `record` for the next `flush`."""
        ...

    def flush(self) -> None:
        """Write the staged records."""
        ...


class GroupCommit:
    """Stages records and flushes `log` once per iteration of the running event loop."""

    def __init__(self, log: StagedLog) -> None:
        self._log = log
        self._waiting: list[asyncio.Future[None]] = []

    def audit(self, record: UnsealedRecord) -> None:
        """Stage `record` for the end of this iteration."""
        self._log.stage(record)

    async def written(self) -> None:
        """Return once all staged records are written: an answer is sent only after its record.

        Raises:
            Exception: an internal error in the log.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._end)
        # Each caller waits for its own future, so that a cancelled one does not cancel the others.
        waiter = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        failure: Exception | None = None
        try:
            self._log.flush()
        except Exception as error:
            failure = error
        for waiter in waiting:
            if waiter.done():
                continue
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)
