"""What bounds the connections of a listener, and what counts those beyond."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one listener.

    `most` connections in total, `most_per_address` for one address; `head_seconds` for TLS and the head of the first
    request; `keepalive_seconds` between requests.
    """

    most: int
    most_per_address: int
    head_seconds: float
    keepalive_seconds: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of requests that cannot be read, by status of the answer, and of closed connections, by result.

    The result is `evicted` (for a new connection), `refused` (at the limit) or `untrusted` (by its certificate).
    """

    request: Callable[[int], None] = lambda _: None
    connection: Callable[[str], None] = lambda _: None


NO_COUNTS = Counts()
"""Counts nothing."""
