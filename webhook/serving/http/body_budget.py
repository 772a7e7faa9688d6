"""A limit on the bytes of large request bodies that are in memory at one time."""

import asyncio
from collections import deque
from contextlib import suppress


class BodyBudgetExceededError(Exception):
    """The bytes did not become free in time; the text states how many are reserved."""


class BodyBudget:
    """A budget of bytes. Requests that exceed it wait in the order of their arrival.

    A request of any size fits if it is the only one. An instance is for one event loop.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._reserved_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def fits(self, size_bytes: int) -> bool:
        """Return whether `size_bytes` fit now and no request waits."""
        return not self._waiting and self._has_capacity(size_bytes)

    async def reserve(self, size_bytes: int, timeout_seconds: float) -> None:
        """Reserve `size_bytes` as soon as they fit.

        Raises:
            BodyBudgetExceededError: they did not fit within `timeout_seconds`.
        """
        if self.fits(size_bytes):
            self._reserved_bytes += size_bytes
        else:
            await self._wait(size_bytes, timeout_seconds)

    def release(self, size_bytes: int) -> None:
        """Release `size_bytes` for the requests that wait."""
        self._reserved_bytes -= size_bytes
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            wanted_bytes, waiter = self._waiting[0]
            if not waiter.done():
                if not self._has_capacity(wanted_bytes):
                    return
                self._reserved_bytes += wanted_bytes
                waiter.set_result(None)
            self._waiting.popleft()

    def _has_capacity(self, size_bytes: int) -> bool:
        return not self._reserved_bytes or self._reserved_bytes + size_bytes <= self._most_bytes

    async def _wait(self, size_bytes: int, timeout_seconds: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, waiter))
        try:
            async with asyncio.timeout(timeout_seconds):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                # The bytes were reserved before the interruption.
                self.release(size_bytes)
            else:
                waiter.cancel()
                with suppress(ValueError):
                    self._waiting.remove((size_bytes, waiter))
                # Smaller requests behind this one may fit.
                self._wake()
            if not isinstance(error, TimeoutError):
                raise
            reserved = f"{self._reserved_bytes} bytes of requests are in flight"
            raise BodyBudgetExceededError(f"{reserved}, {size_bytes} more are over {self._most_bytes}") from error
