"""The worker thread for large and expensive reviews, and background tasks of the event loop."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any

from webhook.runtime.allocator import give_memory_back

# Work that takes this long has allocated much memory, which is then returned to the system.
_TRIM_SECONDS = 0.03


class Worker:
    """A thread that runs one task after the other and reports each result to `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: SimpleQueue[tuple[Callable[[], Any], Callable[[Any, float], None]] | None] = SimpleQueue()
        # A daemon thread does not keep the process from exiting.
        self._thread = threading.Thread(target=self._run, name="large admissions", daemon=True)
        self._thread.start()

    def work(self, task: Callable[[], Any], done: Callable[[Any, float], None]) -> None:
        """Run `task` in the thread, then `done` in the loop with its result and CPU time in seconds."""
        self._tasks.put((task, done))

    def end(self) -> None:
        """Stop the thread after its queued tasks."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (given := self._tasks.get()) is not None:
            task, done = given
            began_seconds = time.thread_time()
            finished: Any
            try:
                finished = task()
            except BaseException as error:
                finished = error
            seconds = time.thread_time() - began_seconds
            try:
                self._loop.call_soon_threadsafe(done, finished, seconds)
            except RuntimeError:  # the loop is closed: the process exits
                return
            # Release the review and its result, up to 3 MiB each, before waiting for the next task.
            del given, task, done, finished
            if seconds >= _TRIM_SECONDS:
                give_memory_back()


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run `work` as the task `name` until the block ends."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
