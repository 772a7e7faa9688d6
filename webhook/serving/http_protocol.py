"""HTTP on one accepted connection: aiohttp's protocol, which knows what its connection is about."""

import asyncio
import socket
from contextlib import suppress
from enum import IntEnum
from typing import Any, Protocol

from aiohttp import web

# What a client may still send of a request that was answered before its end.
_LINGERING_SECONDS = 2.0


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

    __slots__ = ("_owner", "address", "since_seconds", "socket", "stage", "timer")

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
        }
        super().__init__(server, loop=loop, **options)
        self._owner = owner
        self.socket = accepted
        self.address = address
        self.stage = Stage.OPENING
        self.since_seconds = loop.time()
        self.timer: asyncio.TimerHandle | None = None

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


def working(request: web.BaseRequest) -> None:
    """Note that all of `request` is there, and that its connection is not to be closed for another from now on."""
    protocol = request.protocol
    if isinstance(protocol, HttpProtocol):
        protocol.stage = Stage.WORKING
