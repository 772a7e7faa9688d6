"""HTTP on one accepted connection: aiohttp's protocol, which also records the stage of its connection."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import responses
from typing import Any

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD

from webhook.serving.connection import Connection, Stage
from webhook.serving.decisions.admissions import Answer

# The rest of a request that is answered early may still arrive within this time.
_LINGERING_SECONDS = 2.0
# A request of an API server has ten headers, and is sent after the previous answer. What a client sends beyond that is
# held in memory for each connection.
_MAX_HEAD_BYTES = 32 * 1024
_FEW_HEADERS = 16
_BUFFER_BYTES = 32 * 1024
# The rest of a body may follow within this time; after it, aiohttp's task reads the body.
_REST_SECONDS = 0.005
# A client sends its first request within this time after the handshake, or none soon: a request for which Go opens a
# connection may take another one. Source: net/http/transport.go, getConn
_FIRST_REQUEST_SECONDS = 0.25
_BETWEEN_REQUESTS = (Stage.OPENING, Stage.IDLE)


AnswerAtOnce = Callable[["HttpProtocol", RawRequestMessage, bytes], Answer | None]
"""Return the answer to a request with this body, which is sent once it is written. None means that it has to wait."""

AnswerFailure = Callable[["HttpProtocol", int, BaseException | None, str | None], web.Response]
"""Return the response to a request that is not HTTP (with a status below 500) or failed internally, with its cause."""


class HttpProtocol(web.RequestHandler):
    """aiohttp's HTTP on one connection, with the state that its listener needs.

    A request that can be answered immediately is answered when it arrives. aiohttp's task answers other requests. Not
    waking this task saves a third of the time of an admission with a cached decision. `when_written` calls a function
    once the audit record of the last response by `at_once` is written or has failed. `forget` stops counting this
    connection.
    """

    __slots__ = (
        "_answer_failure",
        "_at_once",
        "_body",
        "_closes",
        "_forget",
        "_head_bytes",
        "_incomplete",
        "_is_answering",
        "_when_written",
        "connection",
        "socket",
        "timer",
    )

    def __init__(
        self,
        server: web.Server,
        accepted: socket.socket,
        address: str,
        keepalive_seconds: float,
        *,
        at_once: AnswerAtOnce | None,
        when_written: Callable[[Callable[[Exception | None], None]], None],
        forget: Callable[["HttpProtocol"], None],
        answer_failure: AnswerFailure,
    ) -> None:
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {
            "access_log": None,
            "keepalive_timeout": keepalive_seconds,
            "lingering_time": _LINGERING_SECONDS,
            # Compressed bodies are rejected unread, so they are not decompressed.
            "auto_decompress": False,
            "read_bufsize": _BUFFER_BYTES,
        }
        super().__init__(server, loop=loop, **options)
        self._at_once, self._when_written = at_once, when_written
        self._forget, self._answer_failure = forget, answer_failure
        self.socket = accepted
        self.connection = Connection(address, since_seconds=loop.time())
        self.timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        # The body of the last request that arrived in part.
        self._incomplete: StreamReader | None = None
        # The answer is decided and not sent: its audit record is not written yet.
        self._is_answering = self._closes = False

    @property
    def is_arriving(self) -> bool:
        """Return whether a first request is expected soon, or a request has arrived in part."""
        if self.connection.stage != Stage.OPENING or not self._body.is_eof():
            return not self._body.is_eof()
        is_under_way = self.transport is None or self._head_bytes > 0
        return is_under_way or self._loop.time() - self.connection.since_seconds < _FIRST_REQUEST_SECONDS

    def begin(self, stage: Stage) -> None:
        """Record that a request has arrived and that the connection is now at `stage`."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.connection.stage = stage

    def mark_idle(self) -> None:
        """Mark the connection as idle from now on."""
        self.connection.stage = Stage.IDLE
        self.connection.since_seconds = self._loop.time()

    def abort(self) -> None:
        """Close the connection at once, without a TLS shutdown."""
        if self.transport is not None:
            # Not close(): over TLS it waits for the shutdown of the other side.
            self.transport.abort()
        else:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def data_received(self, data: bytes) -> None:
        """Read `data`. Abort a connection whose request head is too long, or that pipelines requests."""
        is_body, known, waiter = not self._body.is_eof(), self._request_count, self._waiter
        # Hidden, so that a request does not wake the task of the connection.
        self._waiter = None
        super().data_received(data)
        self._waiter = waiter
        if self._request_count != known:
            self._head_bytes = 0
            if self._messages:
                message, self._body = self._messages[-1]
                if len(self._messages) > 1 or _is_too_long(message):
                    self.abort()
                    return
        elif not is_body:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self.abort()
        if not self._messages or self._is_answering:
            return
        if self._waiter is None and self.connection.stage in _BETWEEN_REQUESTS:
            # The task begins, or has sent its answer, and sleeps after this turn of the loop.
            self._loop.call_soon(self._begin, self._messages.popleft())
        else:
            self._answer()

    def _begin(self, first: tuple[Any, StreamReader]) -> None:
        self._messages.appendleft(first)
        self._answer()

    def _answer(self) -> None:
        """Answer the request immediately if possible, or else let aiohttp's task answer it."""
        content = self._messages[0][1]
        if content.is_eof():
            if not self._answer_at_once():
                self._wake()
        elif content is not self._incomplete:
            # The API server sends a review in two parts, and the second one follows soon.
            self._incomplete = content
            self._next_keepalive_close_time += self._keepalive_timeout
            self._loop.call_later(_REST_SECONDS, self._wake_for, content)

    def _wake_for(self, content: StreamReader) -> None:
        if self._messages and self._messages[0][1] is content:
            self._wake()

    def _answer_at_once(self) -> bool:
        """Answer the request that has arrived, if this needs no waiting. Return whether it is answered."""
        at_once, (message, content) = self._at_once, self._messages[0]
        if at_once is None or self._waiter is None or self._waiter.done() or self._paused:
            return False
        if self.connection.stage not in _BETWEEN_REQUESTS or not isinstance(message, RawRequestMessage):
            return False
        # After an upgrade, only aiohttp's task lets the parser go on.
        if message.upgrade or message.version != HttpVersion11:
            return False
        self._is_answering = True
        self.begin(Stage.PROCESSING)
        # Not before the answer is sent: the task of the connection seems to be idle.
        self._next_keepalive_close_time += self._keepalive_timeout
        # Reading the body can parse more of what has arrived.
        body = content.read_nowait()
        answer = at_once(self, message, body)
        if answer is None:
            # The handler reads the body again.
            content = StreamReader(self, _BUFFER_BYTES, loop=self._loop)
            content.feed_data(body)
            content.feed_eof()
            self._messages[0], self._is_answering = (message, content), False
            return False
        self._messages.popleft()
        if self._parser is not None:
            self._parser.message_consumed()
        self._request_in_progress, self._closes = True, message.should_close
        self._when_written(partial(self._send, answer))
        return True

    def _send(self, answer: Answer, failure: Exception | None) -> None:
        """Send `answer`, whose audit record is written, or handle the `failure` to write it."""
        self._is_answering = self._request_in_progress = False
        if failure is not None:
            answer = Answer(500, (self._answer_failure(self, 500, failure, None).text or "").encode())
            self._closes = True
        if self.transport is not None:
            self.transport.write(http_answer(answer, closes=self._closes))
        self.mark_idle()
        self._next_keepalive_close_time = self.connection.since_seconds + self._keepalive_timeout
        if self._handler_waiter is not None and not self._handler_waiter.done():
            self._handler_waiter.set_result(None)
        if self._closes:
            self.force_close()
        elif self._messages:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Close the connection once a response that is already decided has been sent."""
        if self._is_answering:
            self._closes = True
        else:
            super().close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record that the handshake is done."""
        super().connection_made(transport)
        self.connection.since_seconds = self._loop.time()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the connection from its listener."""
        super().connection_lost(exc)
        self._forget(self)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that is not HTTP or that failed, and log it in one line."""
        return self._answer_failure(self, status, exc, message)


def http_answer(answer: Answer, *, closes: bool = False) -> bytes:
    """Return `answer` as HTTP/1.1. With `closes`, the response closes the connection."""
    head = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b"
    phrase = responses[answer.status].encode()
    connection = b"Connection: close\r\n" if closes else b""
    return head % (answer.status, phrase, answer.content_type.encode(), len(answer.body), connection, answer.body)


def _is_too_long(message: Any) -> bool:
    headers = getattr(message, "raw_headers", ())
    if len(headers) <= _FEW_HEADERS:
        return False
    return sum(len(name) + len(value) for name, value in headers) > _MAX_HEAD_BYTES


def protocol_of(request: web.BaseRequest) -> HttpProtocol:
    """Return the protocol of the connection of `request`."""
    protocol = request.protocol
    assert isinstance(protocol, HttpProtocol)  # noqa: S101 - the listener creates no other
    return protocol
