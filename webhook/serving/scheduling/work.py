"""The items that wait for a turn (small reviews, and work for the worker thread), and the reasons to reject one."""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from webhook.serving.connection import Arrival, Connection
from webhook.serving.decisions.admissions import Answer, BeyondLimitError
from webhook.serving.work_budget import WorkBudget

# The worker needs seconds for so many. More of one address would time out, and hold connections and memory until then.
MOST_QUEUED_OF_AN_ADDRESS = 64

CLIENT_GONE = 499
"""The status that is counted for a request whose client disconnected before the answer; nginx logs the same."""


class OverdueError(Exception):
    """The client has timed out."""


class QueueFullError(Exception):
    """Too many requests of one address wait for the worker."""

    def __init__(self) -> None:
        super().__init__(f"more than {MOST_QUEUED_OF_AN_ADDRESS} costly requests of this address wait")


class LimitError(BeyondLimitError):
    """A request that exceeds a limit gets the response `refusal`. `beginning` is the part of its body that was read."""

    def __init__(self, refusal: web.HTTPException, beginning: bytes = b"") -> None:
        super().__init__((refusal.text or "").strip())
        self.refusal = refusal
        self.beginning = beginning


class Work(NamedTuple):
    """Work for the worker thread, which is charged to `flows`.

    `begin` is called in the event loop when the turn of the work comes. It returns the function that the worker thread
    calls with a budget. `finish` is called in the event loop with the result, and returns the response. `overrunning`
    are flows that have exceeded their share of the event loop; the work is also charged to them as an overrun.
    """

    flows: tuple[bytes, ...]
    begin: Callable[[WorkBudget], Callable[[], Any]]
    finish: Callable[[Any], Answer]
    overrunning: tuple[bytes, ...] = ()


class Turn(NamedTuple):
    """A small review that waits for its turn. `came` gets those of its flows that exceed their share."""

    came: "asyncio.Future[tuple[bytes, ...]]"
    body: bytes
    connection: Connection


@dataclass(slots=True, eq=False)
class Job:
    """Work that waits for the worker or that the worker is processing."""

    work: Work
    arrival: Arrival
    answer: "asyncio.Future[Answer]"
    work_budget: WorkBudget | None = None
    context: Context = field(default_factory=copy_context)
    """That of the request, with its span, which the worker has, too."""
