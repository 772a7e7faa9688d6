"""The webhook's port over HTTP: checks path, content type, sizes and timeouts, then calls the dispatcher."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping

from aiohttp import StreamReader, hdrs, web
from aiohttp.http_parser import RawRequestMessage

from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Settings
from webhook.serving.connection import Arrival, Stage
from webhook.serving.decisions.admissions import Answer
from webhook.serving.decisions.group_commit import GroupCommit
from webhook.serving.extender.extender_endpoint import Extender
from webhook.serving.http.body_budget import BodyBudget, BodyBudgetExceededError
from webhook.serving.http.clients import Clients
from webhook.serving.http.protocol import HttpProtocol, protocol_of
from webhook.serving.http.request_head import (
    PATH,
    RegisteredTimeout,
    TimeLimits,
    check_identity,
    check_json,
    time_limits,
)
from webhook.serving.scheduling.dispatcher import SMALL_BYTES, Dispatcher
from webhook.serving.scheduling.work import CLIENT_GONE, LimitError, OverdueError, QueueFullError

# A body with reserved memory must arrive within this time.
_BODY_LATENCY_SECONDS = 1.0
_MIN_BYTES_PER_SECOND = 2 * 1024 * 1024

REFUSALS = (400, 403, 404, 405, 408, 413, 415, CLIENT_GONE, 500, 503)
"""The statuses of requests that do not become admissions."""


class MutateEndpoint:
    """The webhook's endpoint.

    While `draining`, each response closes its connection, so that callers use other replicas.

    A response is sent only after `commit` has written its audit record. `now` returns the time in RFC 3339. Without an
    `extender`, the paths of the extender are not found. A connection whose TLS context is not the current one, `tls()`,
    is closed after its response, because the CAs that verified it have changed. `timeout` limits the timeout that a
    caller requests.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        metrics: Metrics,
        settings: Settings,
        commit: GroupCommit,
        now: Callable[[], str],
        extender: Extender | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        timeout: RegisteredTimeout | None = None,
    ) -> None:
        self.draining = False
        self._extender = extender
        self.commit = commit
        self._now = now
        self.dispatcher = dispatcher
        self._refused = metrics.refused_requests
        self._settings = settings
        self._clients = Clients(settings.client_names, is_required=settings.client_ca is not None)
        self._tls = tls
        self._timeout = timeout or RegisteredTimeout()
        self._answers = 0
        self._in_flight = 0
        self._body_budget = BodyBudget(settings.max_bytes_in_flight)
        metrics.in_flight.set_function(lambda: self._in_flight)
        metrics.waiting.set_function(lambda: dispatcher.waiting)

    def answer_at_once(self, protocol: HttpProtocol, message: RawRequestMessage, body: bytes) -> Answer | None:
        """Return the response to a review that meets all limits and needs no waiting, else None."""
        arrived_seconds, connection = time.monotonic(), protocol.connection
        is_unknown = self._settings.client_ca is not None and not connection.client
        if is_unknown:
            return None
        try:
            limits = self._checked_limits(protocol, message.method, message.path, message.headers)
            if limits.path != PATH or len(body) > self._settings.max_body_bytes or self._is_last(protocol, 1):
                return None
            answer = self.dispatcher.answer_at_once(body, limits.arrival(connection, self._now(), arrived_seconds))
        except Exception:
            # Nothing is recorded by then, so `answer` meets the cause again, and refuses or logs the request.
            return None
        if answer is not None:
            self._answers += 1
        return answer

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of any path and method."""
        try:
            return await self._mutate(request)
        except web.HTTPException as refusal:
            self._refused.labels(str(refusal.status)).inc()
            raise

    def _checked_limits(
        self, protocol: HttpProtocol, method: str, target: str, headers: Mapping[str, str]
    ) -> TimeLimits:
        """Check the head of a request, and return its path and time limits."""
        limits = time_limits(target, self._timeout.seconds)
        if limits.path != PATH and self._extender is None:
            raise web.HTTPNotFound
        if method != hdrs.METH_POST:
            raise web.HTTPMethodNotAllowed(method, [hdrs.METH_POST])
        if not protocol.connection.client:
            protocol.connection.client = self._clients.verified(protocol)
        check_json(headers.get(hdrs.CONTENT_TYPE, ""))
        check_identity(headers.get(hdrs.CONTENT_ENCODING, ""))
        return limits

    async def _mutate(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = protocol_of(request)
        connection = protocol.connection
        arrived_seconds = time.monotonic() if connection.sliced_seconds is None else connection.sliced_seconds
        limits = self._checked_limits(protocol, request.method, request.raw_path, request.headers)
        arrival = limits.arrival(connection, self._now(), arrived_seconds)
        self._in_flight += 1
        is_whole = True
        try:
            answer = await self._answer_within_limits(request, limits, arrival)
        except LimitError as error:
            answer = await self._answer_in_shadow(request, error, limits.path, arrival)
            is_whole = False
        finally:
            self._in_flight -= 1
        self._answers += 1
        headers = {hdrs.CONTENT_TYPE: answer.content_type}
        response = web.Response(status=answer.status, body=answer.body, headers=headers)
        if self._is_last(protocol) or not is_whole:
            response.force_close()
        return response

    def _is_last(self, protocol: HttpProtocol, more: int = 0) -> bool:
        """Return whether the connection is closed after this response, with `more` added to the count of responses."""
        if self.draining or (self._answers + more) % self._settings.answers_per_connection == 0:
            return True
        transport = protocol.transport if protocol.connection.client else None
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        return tls is not None and tls.context is not self._tls()

    async def _answer_within_limits(self, request: web.BaseRequest, limits: TimeLimits, arrival: Arrival) -> Answer:
        """Return the response to a request."""
        size_bytes = self._size_bytes(request.headers)
        # The number of connections bounds the small bodies, so they do not wait for large ones.
        reserved_bytes = size_bytes if size_bytes > SMALL_BYTES else 0
        body = await (self._large_body(request, size_bytes, limits) if reserved_bytes else self._body(request))
        try:
            arrival.connection.stage = Stage.PROCESSING
            if limits.path != PATH and self._extender is not None:
                return await self.dispatcher.answer_in_worker(self._extender.work(limits.path, body, arrival), arrival)
            answer = await self.dispatcher.answer(body, arrival)
            await self.commit.written()
        except (OverdueError, QueueFullError) as error:
            reason = str(error) or f"its turn did not come within {limits.whole_seconds:g} s"
            raise LimitError(web.HTTPServiceUnavailable(text=f"{reason}\n"), body) from error
        else:
            return answer
        finally:
            self._body_budget.release(reserved_bytes)

    async def _answer_in_shadow(
        self, request: web.BaseRequest, error: LimitError, path: str, arrival: Arrival
    ) -> Answer:
        """Return the response to a request that exceeds a limit, if its policy is in shadow mode."""
        if path != PATH or not self.dispatcher.may_be_in_shadow:
            raise error.refusal from error
        if not error.beginning:
            try:
                error.beginning = await self._body(request, 1, timeout_seconds=_BODY_LATENCY_SECONDS)
            except LimitError as late:
                error.beginning = late.beginning
        answer = self.dispatcher.answer_refused(error, arrival)
        await self.commit.written()
        return answer

    def _size_bytes(self, headers: Mapping[str, str]) -> int:
        """Return the size to reserve for the body of a request. For a chunked body, this is the limit."""
        limit = self._settings.max_body_bytes
        length = headers.get(hdrs.CONTENT_LENGTH)
        if length is None:
            return limit
        if int(length) > limit:
            raise LimitError(web.HTTPRequestEntityTooLarge(limit, int(length)))
        return int(length)

    async def _large_body(self, request: web.BaseRequest, size_bytes: int, limits: TimeLimits) -> bytes:
        """Read a large body, reserve memory for it and return it."""
        timeout_seconds = self._settings.read_timeout_seconds
        start = await self._body(request, SMALL_BYTES)
        try:
            await self._body_budget.reserve(size_bytes, min(limits.whole_seconds, timeout_seconds))
        except BodyBudgetExceededError as error:
            raise LimitError(web.HTTPServiceUnavailable(text=f"{error}\n"), start) from error
        try:
            # A body with reserved memory must arrive soon: API servers send a megabyte in milliseconds.
            left_seconds = _BODY_LATENCY_SECONDS + size_bytes / _MIN_BYTES_PER_SECOND
            return await self._body(request, timeout_seconds=min(left_seconds, timeout_seconds), start=start)
        except BaseException:
            self._body_budget.release(size_bytes)
            raise

    async def _body(
        self,
        request: web.BaseRequest,
        most_bytes: int | None = None,
        *,
        timeout_seconds: float | None = None,
        start: bytes = b"",
    ) -> bytes:
        """Read the body that begins with `start`. With `most_bytes`, stop after about this number of bytes."""
        seconds = self._settings.read_timeout_seconds if timeout_seconds is None else timeout_seconds
        pieces = [start]
        try:
            if not start and request.content.is_eof():  # the common case: a body of a few KiB arrives with the head
                body = request.content.read_nowait()
                if len(body) > self._settings.max_body_bytes:
                    raise LimitError(web.HTTPRequestEntityTooLarge(self._settings.max_body_bytes, len(body)), body)
                return body
            if not start and request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout(seconds):
                return await self._read(request.content, pieces, most_bytes)
        except TimeoutError as error:
            refusal = web.HTTPRequestTimeout(text=f"the body did not arrive within {seconds:g} s\n")
            raise LimitError(refusal, b"".join(pieces)) from error
        except web.RequestPayloadError as error:
            text = "the body is not what Content-Length and Transfer-Encoding say\n"
            raise web.HTTPBadRequest(text=text) from error

    async def _read(self, content: StreamReader, pieces: list[bytes], enough_bytes: int | None) -> bytes:
        size_bytes, most_bytes = len(pieces[0]), self._settings.max_body_bytes
        while piece := await content.readany():
            size_bytes += len(piece)
            if size_bytes > most_bytes:
                raise LimitError(web.HTTPRequestEntityTooLarge(most_bytes, size_bytes), b"".join([*pieces, piece]))
            pieces.append(piece)
            if enough_bytes is not None and size_bytes >= enough_bytes:
                break
        return b"".join(pieces)
