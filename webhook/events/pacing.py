"""The spacing of writes: of one Event, of the Events of one source, and of all requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from webhook.events.token_bucket import TokenBucket, TokenBuckets
from webhook.runtime.byte_cache import ByteCache

_SOURCE_BURST = 25
_SOURCE_REFILL_SECONDS = 300.0
_REQUEST_BURST = 25
_SECONDS_PER_REQUEST = 0.1
# A clock may not advance by less.
_SHORTEST_SLEEP_SECONDS = 0.001
_FIRST_INTERVAL_SECONDS = 1.0
_LONGEST_INTERVAL_SECONDS = 60.0
# After so many intervals without a write, an Event is written at once again.
_QUIET_INTERVALS = 10
_WRITES_BYTES = 512 * 1024
_WRITE_BYTES = 512


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a recorder, and the way it waits."""

    monotonic_seconds: Callable[[], float] = time.monotonic
    wall_seconds: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Pacing:
    """Decides when the next request and the next write of an Event may happen.

    With `urgent`, there is no interval between two writes of one Event.
    """

    def __init__(self, clocks: Clocks) -> None:
        self.urgent = False
        self._clocks = clocks
        self._requests = TokenBucket(_REQUEST_BURST, _SECONDS_PER_REQUEST, clocks.monotonic_seconds())
        self._sources = TokenBuckets(_SOURCE_BURST, _SOURCE_REFILL_SECONDS)
        self._written: ByteCache[tuple[str, str], tuple[float, float]] = ByteCache(_WRITES_BYTES)

    async def wait_for_request(self) -> None:
        """Return when the next request may be sent: 25 at once, then ten a second."""
        while (seconds := self._requests.take(self._clocks.monotonic_seconds())) > 0:
            await self._clocks.sleep(max(seconds, _SHORTEST_SLEEP_SECONDS))

    def wait_seconds(self, namespace: str, name: str, source: str) -> float:
        """Take the turn of the Event `name` of `source` and return 0, or return the seconds until it has one.

        The interval between two writes of one Event doubles from one second to a minute. A source has 25 writes at
        once, then one in five minutes.
        """
        now = self._clocks.monotonic_seconds()
        written = self._written.get((namespace, name))
        interval_seconds = _FIRST_INTERVAL_SECONDS
        if written is not None:
            at, interval_seconds = written
            if now < at + interval_seconds and not self.urgent:
                return at + interval_seconds - now
            is_quiet = now > at + _QUIET_INTERVALS * interval_seconds
            interval_seconds = (
                _FIRST_INTERVAL_SECONDS if is_quiet else min(2 * interval_seconds, _LONGEST_INTERVAL_SECONDS)
            )
        if seconds := self._sources.of(source, now).take(now):
            return seconds
        self._written.put((namespace, name), (now, interval_seconds), _WRITE_BYTES + len(name))
        return 0.0
