"""`POST /mutate` over HTTP: content type, sizes and time are checked here, the rest is the admissions' matter."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp import StreamReader, hdrs, web

from webhook.metrics import Metrics
from webhook.serving.admissions import Admissions, Answer
from webhook.settings import Settings, parse_go_duration

# Of the time that the API server grants, this much is kept for the way back.
_MARGIN_RATIO = 0.2
_LONGEST_MARGIN_SECONDS = 0.5
_JSON = "application/json"

PATH = "/mutate"

REFUSALS = (400, 404, 405, 408, 413, 415, 503)
"""The statuses of what never became an admission."""


class MutateEndpoint:
    """The webhook's endpoint. While `draining`, each answer closes its connection, so that callers go elsewhere.

    No answer leaves before `written()` is done: its record must be written by then.
    """

    def __init__(
        self,
        admissions: Admissions,
        metrics: Metrics,
        settings: Settings,
        written: Callable[[], Awaitable[None]],
    ) -> None:
        self.draining = False
        self._written = written
        self._admissions = admissions
        self._settings = settings
        self._answers = 0
        self._in_flight = 0
        self._bytes_in_flight = 0
        metrics.in_flight.set_function(lambda: self._in_flight)

    def server(self, keepalive_seconds: float) -> web.Server:
        """The protocol factory of the one path: aiohttp's low-level server, which needs neither router nor middleware.

        To be called while the event loop runs.
        """
        return web.Server(
            self.answer, request_factory=self._request, access_log=None, keepalive_timeout=keepalive_seconds
        )

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request, whatever its path and method."""
        try:
            return await self._mutate(request)
        except web.HTTPException as refusal:
            self._admissions.refused(refusal.status)
            raise

    async def _mutate(self, request: web.BaseRequest) -> web.Response:
        arrived_seconds = time.monotonic()
        granted_seconds = _granted_seconds(request.raw_path)
        if request.method != hdrs.METH_POST:
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_POST])
        headers = request.headers
        _check_json(headers.get(hdrs.CONTENT_TYPE, ""))
        size_bytes = self._size_bytes(headers)
        self._in_flight += 1
        self._bytes_in_flight += size_bytes
        try:
            body = await self._body(request)
            deadline_seconds = None if granted_seconds is None else arrived_seconds + granted_seconds
            answer = self._admissions.answer(body, arrived_seconds, deadline_seconds)
            await self._written()
        finally:
            self._bytes_in_flight -= size_bytes
            self._in_flight -= 1
        return self._response(answer)

    def _size_bytes(self, headers: Mapping[str, str]) -> int:
        """How much a request's body counts among those in flight; a single one has room whatever its size."""
        limit, most = self._settings.max_body_bytes, self._settings.max_bytes_in_flight
        length = headers.get(hdrs.CONTENT_LENGTH)
        announced_bytes = None if length is None else int(length)
        if announced_bytes is not None and announced_bytes > limit:
            raise web.HTTPRequestEntityTooLarge(limit, announced_bytes)
        # In chunks or compressed, it may become as large as any may be.
        is_told = announced_bytes is not None and hdrs.CONTENT_ENCODING not in headers
        size_bytes = (announced_bytes or 0) if is_told else limit
        if self._bytes_in_flight and self._bytes_in_flight + size_bytes > most:
            text = f"{self._bytes_in_flight} bytes of requests are in flight, {size_bytes} more are over {most}\n"
            raise web.HTTPServiceUnavailable(text=text)
        return size_bytes

    async def _body(self, request: web.BaseRequest) -> bytes:
        try:
            if request.content.is_eof():  # as is mostly so: a body of a few KiB comes with the head
                return self._whole_body(request.content)
            if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout(self._settings.read_timeout_seconds):
                return await request.read()
        except TimeoutError as error:
            seconds = self._settings.read_timeout_seconds
            raise web.HTTPRequestTimeout(text=f"the body did not arrive within {seconds:g} s\n") from error
        except web.RequestPayloadError as error:
            text = f"the body is not what Content-Encoding and Transfer-Encoding say: {error}\n"
            raise web.HTTPBadRequest(text=text) from error

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

    def _request(
        self, message: Any, payload: Any, http: web.RequestHandler, writer: Any, task: "asyncio.Task[None]"
    ) -> web.BaseRequest:
        loop, most = task.get_loop(), self._settings.max_body_bytes
        return web.BaseRequest(message, payload, http, writer, task, loop, client_max_size=most)


@lru_cache(maxsize=64)
def _granted_seconds(target: str) -> float | None:
    """How long the scorer may take where the URL says `?timeout=`; an API server sends the same one each time.

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
        return None
    return timeout_seconds - min(timeout_seconds * _MARGIN_RATIO, _LONGEST_MARGIN_SECONDS)


@lru_cache(maxsize=64)
def _check_json(content_type: str) -> None:
    """Refuse a body that is something else.

    Raises:
        HTTPUnsupportedMediaType: its Content-Type says so.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type is {media_type or 'not given'}; must be {_JSON}\n")
