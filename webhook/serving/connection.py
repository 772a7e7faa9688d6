"""A connection (its client and the stage of its request), and the arrival of a request."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Stage(IntEnum):
    """The stage of a connection; lower stages are evicted first.

    A connection with a `QUEUED` request can be evicted for a connection of another client, because its request has cost
    the server little and can wait for long. A request that is `PROCESSING` gets its response soon.
    """

    OPENING = 0
    IDLE = 1
    READING = 2
    QUEUED = 3
    PROCESSING = 4


@dataclass(slots=True, eq=False)
class Connection:
    """The state of one connection.

    `client` is the name in the verified client certificate, or empty if no certificate is required. `since_seconds` is
    the monotonic time at which a stage up to `READING` began; `OPENING` begins again after the handshake.
    `sliced_seconds` is set if the review exceeded a time slice of the event loop and was passed to the worker: it is
    the monotonic time at which the review arrived.
    """

    address: str = ""
    client: str = ""
    stage: Stage = Stage.OPENING
    since_seconds: float = 0.0
    sliced_seconds: float | None = None


class Arrival(NamedTuple):
    """The arrival of a request on `connection` at `time` (RFC 3339).

    `arrived_seconds` is the same on the monotonic clock. On this clock, the placement check ends at
    `deadline_seconds`, if it has an end, and the client's timeout at `overdue_seconds`.
    """

    connection: Connection
    time: str
    arrived_seconds: float
    deadline_seconds: float | None
    overdue_seconds: float
