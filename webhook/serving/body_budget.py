"""A bound on the bytes of large requests that are in memory at one time."""

import asyncio
from collections import deque
from contextlib import suppress


class NoRoomError(Exception):
    """No room became free in time; the text says how much is taken."""


class Room:
    """Room for a number of bytes. Requests that find none wait for it in the order of their arrival.

    A request of any size has room if it is the only one. An instance is for one event loop.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._taken_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def fits(self, size_bytes: int) -> bool:
        """Return whether there is room for so many bytes now and no request waits."""
        return not self._waiting and self._has_room_for(size_bytes)

    def hold(self, size_bytes: int) -> bool:
        """Take so many bytes if there is room now and no request waits; return whether it was taken."""
        if not self.fits(size_bytes):
            return False
        self._taken_bytes += size_bytes
        return True

    async def take(self, size_bytes: int, patience_seconds: float) -> None:
        """Take so many bytes, once there is room for them.

        Raises:
            NoRoomError: there was none within `patience_seconds`.
        """
        if not self.hold(size_bytes):
            await self._wait(size_bytes, patience_seconds)

    def give_back(self, size_bytes: int) -> None:
        """Give so many bytes back to those who wait."""
        self._taken_bytes -= size_bytes
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            wanted_bytes, waiter = self._waiting[0]
            if not waiter.done():
                if not self._has_room_for(wanted_bytes):
                    return
                self._taken_bytes += wanted_bytes
                waiter.set_result(None)
            self._waiting.popleft()

    def _has_room_for(self, size_bytes: int) -> bool:
        return not self._taken_bytes or self._taken_bytes + size_bytes <= self._most_bytes

    async def _wait(self, size_bytes: int, patience_seconds: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, waiter))
        try:
            async with asyncio.timeout(patience_seconds):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                # It had its room, and is interrupted all the same.
                self.give_back(size_bytes)
            else:
                waiter.cancel()
                with suppress(ValueError):
                    self._waiting.remove((size_bytes, waiter))
                # Those behind may fit where this one did not.
                self._wake()
            if not isinstance(error, TimeoutError):
                raise
            text = f"{self._taken_bytes} bytes of requests are in flight, {size_bytes} more are over {self._most_bytes}"
            raise NoRoomError(text) from error
