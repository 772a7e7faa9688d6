"""The thread for costly answers, and the limits of the work that a page can cause."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from webhook.events.token_bucket import TokenBucket
from webhook.kube.deadline import Expired

T = TypeVar("T")

# A person and a few colleagues look at the console: more is a loop in a page, or abuse.
_MOST_WAITING = 8
_MOST_SECONDS = 30.0
_POSTS_AT_ONCE, _POST_REFILL_SECONDS = 10, 2.0


class BusyError(Exception):
    """There is too much work already; `retry_seconds` says when to come back."""

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Worker:
    """Computes answers in one thread, in the order of their requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "console")
        self._waiting = 0
        self._is_closed = False

    async def run(self, work: Callable[[Expired], T]) -> T:
        """Return `work()`, which gets whether its time is over.

        Raises:
            BusyError: too many answers are waited for.
        """
        if self._waiting >= _MOST_WAITING:
            raise BusyError(f"{self._waiting} requests wait already; try again later", 5.0)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._limited, work)
        finally:
            self._waiting -= 1

    def _limited(self, work: Callable[[Expired], T]) -> T:
        end_seconds = time.monotonic() + _MOST_SECONDS
        return work(lambda: self._is_closed or time.monotonic() > end_seconds)

    def close(self) -> None:
        """End the thread; work that has begun sees that its time is over."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


class PostLimit:
    """Limits requests that carry a body: ten at once, then one in two seconds."""

    def __init__(self, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._bucket = TokenBucket(_POSTS_AT_ONCE, _POST_REFILL_SECONDS, monotonic_seconds())

    def take(self) -> None:
        """Count a request.

        Raises:
            BusyError: there were too many.
        """
        if wait_seconds := self._bucket.take(self._monotonic_seconds()):
            raise BusyError("too many requests; try again in a few seconds", wait_seconds)
