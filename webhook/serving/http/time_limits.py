"""The path of a request, and the time limits of its answer."""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp import web

from webhook.runtime.settings import parse_go_duration
from webhook.serving.extender.extender_endpoint import EXTENDER_PATHS, TIMEOUT_SECONDS
from webhook.serving.scheduling.work import Timeouts

# This share of the API server's timeout is reserved for sending the answer.
_MARGIN_RATIO = 0.2
_MAX_MARGIN_SECONDS = 0.5

PATH = "/mutate"


class TimeLimits(NamedTuple):
    """The path, and the time for the whole answer and for the scorer, in seconds; None: no limit."""

    path: str
    whole_seconds: float
    scorer_seconds: float | None

    def timeouts(self, arrived_seconds: float) -> Timeouts:
        """Return the points in time for a request that arrived at `arrived_seconds`."""
        deadline_seconds = None if self.scorer_seconds is None else arrived_seconds + self.scorer_seconds
        return Timeouts(arrived_seconds, deadline_seconds, arrived_seconds + self.whole_seconds)


@lru_cache(maxsize=64)
def time_limits(target: str, registered_seconds: float) -> TimeLimits:
    """Return the path and `?timeout=` of the URL, which `registered_seconds` bounds.

    An API server always sends the same URL, hence the cache.

    Raises:
        HTTPNotFound: there is no such path.
    """
    try:
        url = urlsplit(target)
    except ValueError as error:  # an IPv6 address without its closing bracket
        raise web.HTTPNotFound from error
    path = unquote(url.path)
    if path not in (PATH, *EXTENDER_PATHS):
        raise web.HTTPNotFound
    longest_seconds = registered_seconds if path == PATH else TIMEOUT_SECONDS
    timeout_seconds = parse_go_duration(dict(parse_qsl(url.query)).get("timeout", ""))
    if timeout_seconds is None:
        return TimeLimits(path, longest_seconds, None)
    timeout_seconds = min(timeout_seconds, longest_seconds)
    margin_seconds = min(timeout_seconds * _MARGIN_RATIO, _MAX_MARGIN_SECONDS)
    return TimeLimits(path, timeout_seconds, timeout_seconds - margin_seconds)
