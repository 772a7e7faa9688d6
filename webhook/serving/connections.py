"""A bound on connections: how many there may be, and how long the first of their requests may take to begin.

What comes after is bounded elsewhere: a body by the endpoint, a pause between requests by aiohttp's keep-alive.
"""

import asyncio
from typing import Any, cast

import structlog
from aiohttp import web


class Connections:
    """The protocol factory of a listener: aiohttp's, whose connections are counted and have to say something.

    One connection more than `most` is closed at once. One that has not sent the whole head of a request within
    `head_seconds` is closed then, as is one that comes and says nothing.
    """

    def __init__(self, server: web.Server, most: int, head_seconds: float) -> None:
        self.head_seconds = head_seconds
        self._most = most
        self._open: dict[web.RequestHandler, _Connection] = {}
        self._is_full = False
        self._log = structlog.get_logger()
        self._server = server
        self._make_request = server.request_factory
        server.request_factory = self._request

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a connection to come."""
        return _Connection(self._server(), self)

    def admit(self, connection: "_Connection") -> bool:
        """Whether there is room for this connection, which counts from now on."""
        if len(self._open) >= self._most:
            if not self._is_full:
                self._is_full = True
                self._log.warning("connections are refused", open=self._most, remedy="find out who opens so many")
            return False
        self._open[connection.http] = connection
        return True

    def gone(self, connection: "_Connection") -> None:
        """Count this connection no longer."""
        self._open.pop(connection.http, None)
        # Told once for each time that it fills up, not once for each connection.
        self._is_full = self._is_full and len(self._open) > self._most // 2

    def _request(
        self, message: Any, payload: Any, http: web.RequestHandler, writer: Any, task: "asyncio.Task[None]"
    ) -> web.BaseRequest:
        if connection := self._open.get(http):
            connection.has_spoken()
        return self._make_request(message, payload, http, writer, task)


class _Connection(asyncio.Protocol):
    """One connection: passes everything on to `http`, which speaks HTTP."""

    def __init__(self, http: web.RequestHandler, connections: Connections) -> None:
        self.http = http
        self._connections = connections
        self._silence: asyncio.TimerHandle | None = None

    def has_spoken(self) -> None:
        """Wait no longer: the head of a request has come."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.http.connection_made(transport)
        # Not close(): over TLS it waits for the other side to say goodbye.
        abort = cast(asyncio.Transport, transport).abort
        if self._connections.admit(self):
            self._silence = asyncio.get_running_loop().call_later(self._connections.head_seconds, abort)
        else:
            abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_spoken()
        self._connections.gone(self)
        self.http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.http.data_received(data)

    def eof_received(self) -> None:
        self.http.eof_received()

    def pause_writing(self) -> None:
        self.http.pause_writing()

    def resume_writing(self) -> None:
        self.http.resume_writing()
