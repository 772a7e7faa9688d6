"""A limit on the bytes of large request bodies that are in memory at one time."""

import asyncio


class BodyBudgetExceededError(Exception):
    """The requested bytes did not become free in time. The text contains the number of reserved bytes."""


class BodyBudget:
    """A budget of bytes, for which requests wait in order; one of any size fits by itself. For one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._reserved_bytes = 0
        # The request whose turn it is waits for bytes, the others for the lock, which is fair.
        self._turn, self._released = asyncio.Lock(), asyncio.Event()

    async def reserve(self, size_bytes: int, timeout_seconds: float) -> None:
        """Wait until `size_bytes` fit into the budget, and reserve them.

        Raises:
            BodyBudgetExceededError: they did not fit within `timeout_seconds`.
        """
        try:
            async with asyncio.timeout(timeout_seconds), self._turn:
                while self._reserved_bytes and self._reserved_bytes + size_bytes > self._most_bytes:
                    self._released.clear()
                    await self._released.wait()
                self._reserved_bytes += size_bytes
        except TimeoutError as error:
            reserved = f"{self._reserved_bytes} bytes of requests are in flight"
            raise BodyBudgetExceededError(f"{reserved}, {size_bytes} more are over {self._most_bytes}") from error

    def release(self, size_bytes: int) -> None:
        """Release `size_bytes` for waiting requests."""
        if size_bytes:
            self._reserved_bytes -= size_bytes
            self._released.set()
