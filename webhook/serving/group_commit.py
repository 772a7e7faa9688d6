"""Audit records of admissions that fall into one turn of the event loop are written together."""

import asyncio
from typing import Protocol

from webhook.audit.record import Draft


class StagedLog(Protocol):
    """An audit log that takes records one by one and writes them together; neither raises for what it cannot write."""

    def stage(self, record: Draft) -> None:
        """Keep `record` for the next `flush`."""
        ...

    def flush(self) -> None:
        """Write what is staged."""
        ...


class GroupCommit:
    """Hands the records of each turn of the running event loop to `log` at its end, and says when they are written."""

    def __init__(self, log: StagedLog) -> None:
        self._log = log
        self._waiting: list[asyncio.Future[None]] = []

    def audit(self, record: Draft) -> None:
        """Have `record` written at the end of this turn."""
        self._log.stage(record)

    async def written(self) -> None:
        """Return once every record so far is written: an answer must not leave before its record is.

        Raises:
            Exception: whatever fault of ours has kept the log from its work.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._end)
        # One for each that waits: who gives up waiting must not make the others do so.
        waiter = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        fault: Exception | None = None
        try:
            self._log.flush()
        except Exception as error:
            fault = error
        for waiter in waiting:
            if waiter.done():
                continue
            if fault is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(fault)
