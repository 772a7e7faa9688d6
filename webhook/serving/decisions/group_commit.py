"""Writes the audit records of one event-loop iteration in one batch."""

import asyncio
from collections.abc import Callable


class GroupCommit:
    """Calls `flush`, which writes the staged records, at most once in an iteration of the running event loop."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._waiting: list[Callable[[Exception | None], None]] = []

    def when_written(self, done: Callable[[Exception | None], None]) -> None:
        """Call `done` with None, or the error that prevented it, once all staged records are written."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._end)
        self._waiting.append(done)

    async def written(self) -> None:
        """Return once all staged records are written.

        Raises:
            Exception: an internal error prevented the write.
        """
        # Each caller waits for its own future, so that a cancelled one does not cancel the others.
        waiter = asyncio.get_running_loop().create_future()

        def end(failure: Exception | None) -> None:
            if waiter.done():
                return
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)

        self.when_written(end)
        await waiter

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        failure: Exception | None = None
        try:
            self._flush()
        except Exception as error:
            failure = error
        for done in waiting:
            try:
                done(failure)
            except Exception as error:  # of one connection: the others get their answers
                context = {"message": "an answer cannot be sent", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
