"""`POST /mutate` over HTTP: content type, size and time are checked here, the rest is the admissions' matter."""

import asyncio
import time
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


class MutateEndpoint:
    """The webhook's endpoint. While `draining`, each answer closes its connection, so that callers go elsewhere."""

    def __init__(self, admissions: Admissions, metrics: Metrics, settings: Settings) -> None:
        self.draining = False
        self._admissions = admissions
        self._in_flight = metrics.in_flight
        self._settings = settings
        self._answers = 0

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
            body = await self._body(request)
            answer = self._admissions.answer(body, arrived_seconds, _deadline(request.query_string, arrived_seconds))
        finally:
            self._in_flight.dec()
        return self._response(answer)

    async def _body(self, request: web.Request) -> bytes:
        limit = self._settings.max_body_bytes
        if (request.content_length or 0) > limit:
            raise web.HTTPRequestEntityTooLarge(limit, request.content_length or 0)
        if request.content.is_eof():
            return await request.read()
        try:
            async with asyncio.timeout(self._settings.read_timeout_seconds):
                return await request.read()
        except TimeoutError as error:
            seconds = self._settings.read_timeout_seconds
            raise web.HTTPRequestTimeout(text=f"the body did not arrive within {seconds:g} s\n") from error

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
