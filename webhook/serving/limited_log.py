"""A log of events that any client can cause as often as it likes: so many lines in each window."""

import asyncio
from typing import Any

import structlog

_MAX_LINES = 20
_WINDOW_SECONDS = 10.0


class LimitedLog:
    """Logs warnings, and counts those over the limit. An instance is for one event loop, whose clock it uses."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._window_began_seconds = float("-inf")
        self._lines = 0

    def warning(self, event: str, **fields: Any) -> None:
        """Log `event` with its fields, unless there were too many."""
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds - self._window_began_seconds >= _WINDOW_SECONDS:
            if self._lines > _MAX_LINES:
                self._log.warning("more of the same was not logged", lines=self._lines - _MAX_LINES)
            self._window_began_seconds, self._lines = now_seconds, 0
        self._lines += 1
        if self._lines <= _MAX_LINES:
            self._log.warning(event, **fields)
