"""The head of a request: its path, the time limits of its response, and checks of its headers."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp import web

from webhook.runtime.settings import parse_go_duration
from webhook.serving.connection import Arrival, Connection
from webhook.serving.extender.extender_endpoint import EXTENDER_PATHS, TIMEOUT_SECONDS

# This share of the API server's timeout is reserved for sending the answer.
_MARGIN_RATIO = 0.2
_MAX_MARGIN_SECONDS = 0.5

# The longest timeoutSeconds of a webhook, and the default.
# Source: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go, v1/defaults.go
_LONGEST_SECONDS = 30.0
_DEFAULT_SECONDS = 10.0

PATH = "/mutate"
JSON = "application/json"


class RegisteredTimeout:
    """The longest timeout of the registered webhooks in `seconds`, or 30 while the configuration is not known.

    A client sends its own timeout in the URL. Without this limit, a client other than an API server could keep its
    requests in the queue for longer than others.
    """

    def __init__(self) -> None:
        self.seconds = _LONGEST_SECONDS

    def follow(self, configuration: Mapping[str, Any] | None) -> None:
        """Take over the timeouts of a MutatingWebhookConfiguration, a raw API object of any shape."""
        webhooks = (configuration or {}).get("webhooks")
        found = [
            each.get("timeoutSeconds", _DEFAULT_SECONDS)
            for each in (webhooks if isinstance(webhooks, list) else ())
            if isinstance(each, Mapping)
        ]
        valid = [float(each) for each in found if isinstance(each, int | float) and 0 < each <= _LONGEST_SECONDS]
        self.seconds = max(valid, default=_LONGEST_SECONDS)


class TimeLimits(NamedTuple):
    """The path, and the times in seconds for the whole response and for the scorer. None means no limit."""

    path: str
    whole_seconds: float
    scorer_seconds: float | None

    def arrival(self, connection: Connection, time: str, arrived_seconds: float) -> Arrival:
        """Return the arrival of a request at `time` (RFC 3339) and `arrived_seconds` of the monotonic clock."""
        deadline_seconds = None if self.scorer_seconds is None else arrived_seconds + self.scorer_seconds
        return Arrival(connection, time, arrived_seconds, deadline_seconds, arrived_seconds + self.whole_seconds)


@lru_cache(maxsize=64)
def time_limits(target: str, registered_seconds: float) -> TimeLimits:
    """Return the cached path and `?timeout=` of the URL, which is limited to `registered_seconds`.

    Raises:
        HTTPNotFound: the path does not exist.
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


@lru_cache(maxsize=64)
def check_json(content_type: str) -> None:
    """Check the Content-Type.

    Raises:
        HTTPUnsupportedMediaType: the type is not JSON.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != JSON:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type is {media_type or 'not given'}; must be {JSON}\n")


def check_identity(encoding: str) -> None:
    """Reject a compressed body, because its decompressed size is unbounded. API servers do not compress.

    Raises:
        HTTPUnsupportedMediaType: the Content-Encoding is not `identity`.
    """
    if encoding and encoding.strip().lower() != "identity":
        text = f"Content-Encoding is {encoding[:40]}; must be identity, or not given\n"
        raise web.HTTPUnsupportedMediaType(text=text)
