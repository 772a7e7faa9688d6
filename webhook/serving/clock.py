"""The time in the format of records, and a log with a limited rate."""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import structlog


def rfc3339_now() -> str:
    """Return the current time in UTC with microseconds: `2026-01-31T12:00:00.000000Z`."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_rfc3339_seconds(seconds)}.{nanoseconds // 1000:06}Z"


@lru_cache(maxsize=1)
def _rfc3339_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


_MAX_LINES = 20
_WINDOW_SECONDS = 10.0


class LimitedLog:
    """Logs warnings up to a rate, and counts those beyond it.

    An instance is for one event loop, whose clock it uses.
    """

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._window_began_seconds = float("-inf")
        self._lines = 0

    def warning(self, event: str, **fields: Any) -> None:
        """Log `event` with its fields, unless the rate is exceeded."""
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds - self._window_began_seconds >= _WINDOW_SECONDS:
            if self._lines > _MAX_LINES:
                self._log.warning("more of the same was not logged", lines=self._lines - _MAX_LINES)
            self._window_began_seconds, self._lines = now_seconds, 0
        self._lines += 1
        if self._lines <= _MAX_LINES:
            self._log.warning(event, **fields)
