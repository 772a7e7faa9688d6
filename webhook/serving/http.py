"""`POST /mutate` over HTTP: content type, sizes and time are checked here, the rest is the dispatcher's matter."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp import StreamReader, hdrs, web

from webhook.metrics import Metrics
from webhook.serving.admissions import Answer
from webhook.serving.body_budget import BodyBudget, BodyBudgetExceededError
from webhook.serving.dispatcher import CLIENT_GONE, SMALL_BYTES, Dispatcher, OverdueError, Timeouts
from webhook.serving.http_protocol import working
from webhook.settings import Settings, parse_go_duration

# Of the time that the API server grants, this much is kept for the way back.
_MARGIN_RATIO = 0.2
_LONGEST_MARGIN_SECONDS = 0.5
# An API server waits for no webhook longer than that.
_LONGEST_TIMEOUT_SECONDS = 30.0
# A body with reserved memory must arrive within this time.
_SLOWEST_SECONDS = 1.0
_SLOWEST_BYTES_A_SECOND = 2 * 1024 * 1024
_JSON = "application/json"

PATH = "/mutate"

REFUSALS = (400, 404, 405, 408, 413, 415, CLIENT_GONE, 500, 503)
"""The statuses of what never became an admission."""


class MutateEndpoint:
    """The webhook's endpoint. While `draining`, each answer closes its connection, so that callers go elsewhere.

    No answer leaves before `written()` is done: its record must be written by then. `now` is the time in RFC 3339.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        metrics: Metrics,
        settings: Settings,
        written: Callable[[], Awaitable[None]],
        now: Callable[[], str],
    ) -> None:
        self.draining = False
        self._written = written
        self._now = now
        self._dispatcher = dispatcher
        self._refused = metrics.refused_requests
        self._settings = settings
        self._answers = 0
        self._in_flight = 0
        self._body_budget = BodyBudget(settings.max_bytes_in_flight)
        metrics.in_flight.set_function(lambda: self._in_flight)
        metrics.waiting.set_function(lambda: dispatcher.waiting)

    def hurry(self) -> None:
        """Answer what is there as fast as can be: the process is about to end."""
        self._dispatcher.draining = True

    def close(self) -> None:
        """End what works for the endpoint."""
        self._dispatcher.close()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request, whatever its path and method."""
        try:
            return await self._mutate(request)
        except web.HTTPException as refusal:
            self._refused.labels(str(refusal.status)).inc()
            raise

    async def _mutate(self, request: web.BaseRequest) -> web.Response:
        arrived_seconds = time.monotonic()
        granted = _granted(request.raw_path)
        if request.method != hdrs.METH_POST:
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_POST])
        headers = request.headers
        _check_json(headers.get(hdrs.CONTENT_TYPE, ""))
        _check_identity(headers.get(hdrs.CONTENT_ENCODING, ""))
        size_bytes = self._size_bytes(headers)
        self._in_flight += 1
        try:
            # Small bodies are bounded by the number of connections, and do not wait for large ones.
            held = size_bytes if size_bytes > SMALL_BYTES else 0
            body = await (self._large_body(request, size_bytes) if held else self._body(request))
            try:
                working(request)
                answer = await self._dispatcher.answer(body, granted.timeouts(arrived_seconds), self._now())
                await self._written()
            except OverdueError as error:
                text = f"its turn did not come within {granted.whole_seconds:g} s\n"
                raise web.HTTPServiceUnavailable(text=text) from error
            finally:
                self._body_budget.release(held)
        finally:
            self._in_flight -= 1
        return self._response(answer)

    def _size_bytes(self, headers: Mapping[str, str]) -> int:
        """How much a request's body counts among those in flight; in chunks, it may become as large as any may be."""
        limit = self._settings.max_body_bytes
        length = headers.get(hdrs.CONTENT_LENGTH)
        if length is None:
            return limit
        if int(length) > limit:
            raise web.HTTPRequestEntityTooLarge(limit, int(length))
        return int(length)

    async def _large_body(self, request: web.BaseRequest, size_bytes: int) -> bytes:
        """Read a large body, reserve memory for it and return it.

        Memory is reserved after the first bytes have arrived, so an announced body alone reserves none.
        """
        timeout_seconds = self._settings.read_timeout_seconds
        whole_seconds = _granted(request.raw_path).whole_seconds
        start = await self._body(request, SMALL_BYTES)
        try:
            await self._body_budget.reserve(size_bytes, min(whole_seconds, timeout_seconds))
        except BodyBudgetExceededError as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
        try:
            # A body with reserved memory must arrive soon: API servers send a megabyte in milliseconds.
            left_seconds = _SLOWEST_SECONDS + size_bytes / _SLOWEST_BYTES_A_SECOND
            rest = await self._body(request, timeout_seconds=min(left_seconds, timeout_seconds), start=start)
        except BaseException:
            self._body_budget.release(size_bytes)
            raise
        return rest

    async def _body(
        self,
        request: web.BaseRequest,
        most_bytes: int | None = None,
        *,
        timeout_seconds: float | None = None,
        start: bytes = b"",
    ) -> bytes:
        """Read the body that begins with `start`; with `most_bytes`, about so much of it."""
        seconds = self._settings.read_timeout_seconds if timeout_seconds is None else timeout_seconds
        try:
            if not start and request.content.is_eof():  # as is mostly so: a body of a few KiB comes with the head
                return self._whole_body(request.content)
            if not start and request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout(seconds):
                return await self._read(request.content, start, most_bytes)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(text=f"the body did not arrive within {seconds:g} s\n") from error
        except web.RequestPayloadError as error:
            text = "the body is not what Content-Length and Transfer-Encoding say\n"
            raise web.HTTPBadRequest(text=text) from error

    async def _read(self, content: StreamReader, start: bytes, enough_bytes: int | None) -> bytes:
        """Read what comes in pieces, each held once."""
        pieces, size_bytes, most_bytes = [start], len(start), self._settings.max_body_bytes
        while piece := await content.readany():
            size_bytes += len(piece)
            if size_bytes > most_bytes:
                raise web.HTTPRequestEntityTooLarge(most_bytes, size_bytes)
            pieces.append(piece)
            if enough_bytes is not None and size_bytes >= enough_bytes:
                break
        return b"".join(pieces)

    def _whole_body(self, content: StreamReader) -> bytes:
        body = content.read_nowait()
        if len(body) > self._settings.max_body_bytes:
            raise web.HTTPRequestEntityTooLarge(self._settings.max_body_bytes, len(body))
        return body

    def _response(self, answer: Answer) -> web.Response:
        content_type = _JSON if answer.status == 200 else "text/plain"
        response = web.Response(status=answer.status, body=answer.body, content_type=content_type)
        self._answers += 1
        if self.draining or self._answers % self._settings.answers_per_connection == 0:
            response.force_close()
        return response


class _Granted(NamedTuple):
    """How long an answer may take in all, and how long the scorer may be asked; None: without end."""

    whole_seconds: float
    scorer_seconds: float | None

    def timeouts(self, arrived_seconds: float) -> Timeouts:
        """The same for a request that came then."""
        deadline_seconds = None if self.scorer_seconds is None else arrived_seconds + self.scorer_seconds
        return Timeouts(arrived_seconds, deadline_seconds, arrived_seconds + self.whole_seconds)


@lru_cache(maxsize=64)
def _granted(target: str) -> _Granted:
    """How long the answer may take where the URL says `?timeout=`; an API server sends the same one each time.

    Raises:
        HTTPNotFound: the path is another.
    """
    try:
        url = urlsplit(target)
    except ValueError as error:  # the brackets of an IPv6 address, one of them missing
        raise web.HTTPNotFound from error
    if unquote(url.path) != PATH:
        raise web.HTTPNotFound
    timeout_seconds = parse_go_duration(dict(parse_qsl(url.query)).get("timeout", ""))
    if timeout_seconds is None:
        return _Granted(_LONGEST_TIMEOUT_SECONDS, None)
    margin_seconds = min(timeout_seconds * _MARGIN_RATIO, _LONGEST_MARGIN_SECONDS)
    return _Granted(min(timeout_seconds, _LONGEST_TIMEOUT_SECONDS), timeout_seconds - margin_seconds)


@lru_cache(maxsize=64)
def _check_json(content_type: str) -> None:
    """Refuse a body that is something else.

    Raises:
        HTTPUnsupportedMediaType: its Content-Type says so.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type is {media_type or 'not given'}; must be {_JSON}\n")


def _check_identity(encoding: str) -> None:
    """Refuse a body that is compressed: what it would become is bounded by nothing, and an API server sends none.

    Raises:
        HTTPUnsupportedMediaType: its Content-Encoding says so.
    """
    if encoding and encoding.strip().lower() != "identity":
        text = f"Content-Encoding is {encoding[:40]}; must be identity, or not given\n"
        raise web.HTTPUnsupportedMediaType(text=text)
