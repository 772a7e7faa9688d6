"""HTTP on one accepted connection: aiohttp's protocol, which also knows the stage of its connection."""

import asyncio
import socket
from contextlib import suppress
from typing import Any, Protocol

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.streams import EMPTY_PAYLOAD

from webhook.serving.connection import Connection, Stage

# The rest of a request that is answered early may still arrive within this time.
_LINGERING_SECONDS = 2.0
# A request of an API server has ten headers, and is sent after the previous answer. What a client sends beyond that is
# held in memory for each connection.
_MAX_HEAD_BYTES = 32 * 1024
_FEW_HEADERS = 16
_BUFFER_BYTES = 32 * 1024


class ConnectionListener(Protocol):
    """The listener that accepted the connection."""

    def forget(self, protocol: "HttpProtocol") -> None:
        """Stop counting this connection."""
        ...

    def answer_failure(
        self, protocol: "HttpProtocol", status: int, exc: BaseException | None, message: str | None
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP (`status` below 500) or that failed internally."""
        ...


class HttpProtocol(web.RequestHandler):
    """aiohttp's HTTP on one connection, with the state that its listener needs."""

    __slots__ = ("_body", "_head_bytes", "_listener", "connection", "socket", "timer")

    def __init__(
        self,
        listener: ConnectionListener,
        server: web.Server,
        accepted: socket.socket,
        address: str,
        keepalive_seconds: float,
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
        self._listener = listener
        self.socket = accepted
        self.connection = Connection(address, since_seconds=loop.time())
        self.timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._body: StreamReader = EMPTY_PAYLOAD

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
        """Read `data`; abort a connection whose head is too long, or that pipelines requests."""
        is_body, known = not self._body.is_eof(), self._request_count
        super().data_received(data)
        if self._request_count != known:
            self._head_bytes = 0
            if self._messages:
                message, self._body = self._messages[-1]
                if len(self._messages) > 1 or _is_too_long(message):
                    self.abort()
        elif not is_body:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the connection from its listener."""
        super().connection_lost(exc)
        self._listener.forget(self)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP or that failed, and log it in one line."""
        return self._listener.answer_failure(self, status, exc, message)


class JsonResponse(web.StreamResponse):
    """Status 200 with the JSON in `body`, written at once, after which the connection stays open.

    aiohttp's own response makes its head from a mapping of headers, which takes a tenth of an admission.
    """

    keep_alive = True

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._content = body

    @staticmethod
    def is_for(request: web.BaseRequest) -> bool:
        """Return whether the client of `request` keeps its connection open."""
        return request.keep_alive and request.version == HttpVersion11

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Take over the writer of the connection."""
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002 - aiohttp's signature
        """Write head and body."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await self._writer.write(head % len(self._content) + self._content)


def _is_too_long(message: Any) -> bool:
    headers = getattr(message, "raw_headers", ())
    if len(headers) <= _FEW_HEADERS:
        return False
    return sum(len(name) + len(value) for name, value in headers) > _MAX_HEAD_BYTES


def connection_of(request: web.BaseRequest) -> Connection:
    """Return the connection of `request`."""
    protocol = request.protocol
    assert isinstance(protocol, HttpProtocol)  # noqa: S101 - the listener creates no other
    return protocol.connection
