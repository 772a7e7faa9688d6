"""The state of a connection: its client and the stage of its request."""

from dataclasses import dataclass
from enum import IntEnum


class Stage(IntEnum):
    """The stage of a connection; lower stages are evicted first.

    A request that is `QUEUED` has cost the server little and can wait for long, so it gives way to a connection of
    another client. One that is `PROCESSING` is decided or about to be, and its answer comes soon.
    """

    OPENING = 0
    IDLE = 1
    READING = 2
    QUEUED = 3
    PROCESSING = 4


@dataclass(slots=True, eq=False)
class Connection:
    """The state of one connection.

    `client` is the name in its certificate, which was verified, or empty if none is required. `since_seconds` is the
    monotonic time at which a stage up to `READING` began; `OPENING` begins again after the handshake. `sliced_seconds`
    is the monotonic time at which its review arrived, if the review took more than a time slice of the event loop and
    so was given to the worker.
    """

    address: str = ""
    client: str = ""
    stage: Stage = Stage.OPENING
    since_seconds: float = 0.0
    sliced_seconds: float | None = None
