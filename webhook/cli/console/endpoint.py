"""The endpoints of a page: a path and the function that returns its JSON."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.kube.deadline import Expired, never

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its query, its body (empty for GET), and whether the time for its answer is over."""

    query: Query = field(default_factory=dict)
    body: bytes = b""
    expired: Expired = never


class NotFoundError(Exception):
    """What a request names does not exist, or no longer."""


def reported_once() -> Iterable[Query]:
    """Return the empty query: a report holds the one answer of the endpoint."""
    return ({},)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers requests for `path`, which begins with `/api/`, by JSON.

    A costly answer is computed in the worker thread, one after the other; others take a few milliseconds.
    `reported` returns the queries whose answers a report holds, in the place of a server; by default none.

    `answer` raises InvalidInput for bad input, and NotFoundError.
    """

    path: str
    answer: Callable[[Asked], object]
    method: Literal["GET", "POST"] = "GET"
    is_costly: bool = False
    reported: Callable[[], Iterable[Query]] = lambda: ()
