"""HTTP on one accepted connection: aiohttp's protocol, which knows what its connection is about."""

import asyncio
import socket
from contextlib import suppress
from enum import IntEnum
from typing import Any, Protocol

from aiohttp import StreamReader, web
from aiohttp.streams import EMPTY_PAYLOAD

# What a client may still send of a request that was answered before its end.
_LINGERING_SECONDS = 2.0
# An API server's request has ten headers, and comes when the one before is answered. What a client sends beyond that is
# held in memory, for each connection.
_LARGEST_HEAD_BYTES = 32 * 1024
_FEW_HEADERS = 16
_BUFFER_BYTES = 32 * 1024


class Stage(IntEnum):
    """What a connection is about; the lower, the sooner another takes its place."""

    OPENING = 0
    IDLE = 1
    READING = 2
    WORKING = 3


class Owner(Protocol):
    """The listener that has accepted the connection."""

    def gone(self, protocol: "HttpProtocol") -> None:
        """Count this connection no longer."""
        ...

    def unreadable(
        self, protocol: "HttpProtocol", status: int, exc: BaseException | None, message: str | None
    ) -> web.StreamResponse:
        """Answer what is no HTTP (`status` below 500) or what failed here."""
        ...


class HttpProtocol(web.RequestHandler):
    """aiohttp's HTTP on one connection, and what its listener has to know of it."""

    __slots__ = ("_body", "_head_bytes", "_owner", "address", "since_seconds", "socket", "stage", "timer")

    def __init__(
        self, owner: Owner, server: web.Server, accepted: socket.socket, address: str, keepalive_seconds: float
    ) -> None:
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {
            "access_log": None,
            "keepalive_timeout": keepalive_seconds,
            "lingering_time": _LINGERING_SECONDS,
            # What is compressed is refused unread; nothing is unpacked meanwhile.
            "auto_decompress": False,
            "read_bufsize": _BUFFER_BYTES,
        }
        super().__init__(server, loop=loop, **options)
        self._owner = owner
        self.socket = accepted
        self.address = address
        self.stage = Stage.OPENING
        self.since_seconds = loop.time()
        self.timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._body: StreamReader = EMPTY_PAYLOAD

    def rest(self) -> None:
        """Be idle from now on."""
        self.stage = Stage.IDLE
        self.since_seconds = self._loop.time()

    def abort(self) -> None:
        """Close the connection at once, without a goodbye."""
        if self.transport is not None:
            # Not close(): over TLS it waits for the other side to say goodbye.
            self.transport.abort()
        else:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def data_received(self, data: bytes) -> None:
        """Take `data` in; abort a connection whose head is too long, or that sends ahead of its answers."""
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
            if self._head_bytes > _LARGEST_HEAD_BYTES:
                self.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count the connection no longer."""
        super().connection_lost(exc)
        self._owner.gone(self)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP, or what failed, and log it as one line."""
        return self._owner.unreadable(self, status, exc, message)


def _is_too_long(message: Any) -> bool:
    headers = getattr(message, "raw_headers", ())
    if len(headers) <= _FEW_HEADERS:
        return False
    return sum(len(name) + len(value) for name, value in headers) > _LARGEST_HEAD_BYTES


def working(request: web.BaseRequest) -> None:
    """Note that all of `request` is there, and that its connection is not to be closed for another from now on."""
    protocol = request.protocol
    if isinstance(protocol, HttpProtocol):
        protocol.stage = Stage.WORKING
