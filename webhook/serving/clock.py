"""The current time for audit records."""

import time
from datetime import UTC, datetime
from functools import lru_cache


def rfc3339_now() -> str:
    """Return the current time in UTC with microseconds: `2026-01-31T12:00:00.000000Z`."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_rfc3339_seconds(seconds)}.{nanoseconds // 1000:06}Z"


@lru_cache(maxsize=1)
def _rfc3339_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
