"""`POST /mutate` over HTTP: content type, sizes and time are checked here, the rest is the admissions' matter."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.typedefs import Handler

from webhook.metrics import Metrics
from webhook.serving.admissions import Admissions, Answer
from webhook.settings import Settings, parse_go_duration

# Of the time that the API server grants, this much is kept for the way back.
_MARGIN_RATIO = 0.2
_LONGEST_MARGIN_SECONDS = 0.5
_JSON = "application/json"

REFUSALS = (400, 404, 405, 408, 413, 415, 503)
"""The statuses of what never became an admission."""


class MutateEndpoint:
    """The webhook's endpoint. While `draining`, each answer closes its connection, so that callers go elsewhere."""

    def __init__(self, admissions: Admissions, metrics: Metrics, settings: Settings) -> None:
        self.draining = False
        self._admissions = admissions
        self._in_flight = metrics.in_flight
        self._settings = settings
        self._answers = 0
        self._bytes_in_flight = 0

    def application(self) -> web.Application:
        """The aiohttp application with the one route."""
        application = web.Application(client_max_size=self._settings.max_body_bytes, middlewares=[self._count_refusals])
        application.router.add_post("/mutate", self.mutate)
        return application

    async def mutate(self, request: web.Request) -> web.Response:
        """Answer one AdmissionReview."""
        arrived_seconds = time.monotonic()
        self._in_flight.inc()
        try:
            if request.content_type != _JSON:
                raise web.HTTPUnsupportedMediaType(text=f"Content-Type is {request.content_type}; must be {_JSON}\n")
            with self._room_for(request):
                body = await self._body(request)
                deadline_seconds = _deadline(request.query_string, arrived_seconds)
                answer = self._admissions.answer(body, arrived_seconds, deadline_seconds)
        finally:
            self._in_flight.dec()
        return self._response(answer)

    @contextmanager
    def _room_for(self, request: web.Request) -> Iterator[None]:
        """Have the request's body counted among those in flight; a single one has room whatever its size."""
        limit, most = self._settings.max_body_bytes, self._settings.max_bytes_in_flight
        announced_bytes = request.content_length
        if announced_bytes is not None and announced_bytes > limit:
            raise web.HTTPRequestEntityTooLarge(limit, announced_bytes)
        # In chunks or compressed, it may become as large as any may be.
        is_told = announced_bytes is not None and "Content-Encoding" not in request.headers
        size_bytes = (announced_bytes or 0) if is_told else limit
        if self._bytes_in_flight and self._bytes_in_flight + size_bytes > most:
            text = f"{self._bytes_in_flight} bytes of requests are in flight, {size_bytes} more are over {most}\n"
            raise web.HTTPServiceUnavailable(text=text)
        self._bytes_in_flight += size_bytes
        try:
            yield
        finally:
            self._bytes_in_flight -= size_bytes

    async def _body(self, request: web.Request) -> bytes:
        try:
            if request.content.is_eof():
                return await request.read()
            async with asyncio.timeout(self._settings.read_timeout_seconds):
                return await request.read()
        except TimeoutError as error:
            seconds = self._settings.read_timeout_seconds
            raise web.HTTPRequestTimeout(text=f"the body did not arrive within {seconds:g} s\n") from error
        except web.RequestPayloadError as error:
            text = f"the body is not what Content-Encoding and Transfer-Encoding say: {error}\n"
            raise web.HTTPBadRequest(text=text) from error

    def _response(self, answer: Answer) -> web.Response:
        content_type = _JSON if answer.status == 200 else "text/plain"
        response = web.Response(status=answer.status, body=answer.body, content_type=content_type)
        self._answers += 1
        if self.draining or self._answers % self._settings.answers_per_connection == 0:
            response.force_close()
        return response

    @web.middleware
    async def _count_refusals(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as refusal:
            self._admissions.refused(refusal.status)
            raise


def _deadline(query: str, arrived_seconds: float) -> float | None:
    granted_seconds = _granted_seconds(query)
    return None if granted_seconds is None else arrived_seconds + granted_seconds


@lru_cache(maxsize=64)
def _granted_seconds(query: str) -> float | None:
    """How long the scorer may take where the API server's URL says `?timeout=`; one server sends the same each time."""
    timeout_seconds = parse_go_duration(dict(parse_qsl(query)).get("timeout", ""))
    if timeout_seconds is None:
        return None
    return timeout_seconds - min(timeout_seconds * _MARGIN_RATIO, _LONGEST_MARGIN_SECONDS)
