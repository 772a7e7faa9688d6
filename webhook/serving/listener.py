"""A listener that bounds its connections from their accept on, before TLS or HTTP cost any memory.

There are bounds on all connections and on those of one address. Where one is reached, a new connection takes the place
of the one that is needed least: first of those that have not sent the head of a request yet, then of those that are
idle, then of those whose request is still to come; of these the one that has been so for longest. One whose request
is being answered is never closed for another.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web

from webhook.kube.field import InvalidInput, invalid, shown
from webhook.serving.http_protocol import HttpProtocol, Stage
from webhook.settings import Address

_BACKLOG = 1024
# So many are accepted before the loop looks after those that are there.
_ACCEPTED_AT_ONCE = 64
# Where the process has no more file descriptors, accepting again at once would only fail again.
_PAUSE_SECONDS = 0.2
_GOODBYE_SECONDS = 5.0
# What anybody can bring about as often as he likes is so many lines of the log at most in so many seconds.
_MOST_LINES = 20
_WINDOW_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one listener.

    `most` connections in all, `most_per_address` of one address; `head_seconds` for TLS and the head of the first
    request; `keepalive_seconds` between requests.
    """

    most: int
    most_per_address: int
    head_seconds: float
    keepalive_seconds: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters: of requests that cannot be read, by the status of their answer, and of connections closed.

    These are `evicted`, for another one, or `refused`, for want of room.
    """

    request: Callable[[int], None] = lambda _: None
    connection: Callable[[str], None] = lambda _: None


class Listener:
    """Listens on one address and hands each request to `handler`."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: Limits,
        *,
        tls: ssl.SSLContext | None = None,
        max_body_bytes: int = 1024,
        counts: Counts = Counts(),
    ) -> None:
        self.limits = limits
        self._handler = handler
        self._tls = tls
        self._max_body_bytes = max_body_bytes
        self._counts = counts
        self._open: set[HttpProtocol] = set()
        self._by_address: Counter[str] = Counter()
        self._opening: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._log = structlog.get_logger()
        self._window_began_seconds = 0.0
        self._lines = 0
        self._server: web.Server | None = None

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._open)

    async def start(self, flag: str, address: Address) -> Address:
        """Listen on `address`, which `flag` gave; return it with its port.

        Raises:
            InvalidInput: it cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        # A request whose client has left is cancelled.
        self._server = web.Server(self._answer, request_factory=self._request, handler_cancellation=True)
        try:
            infos = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, where in dict.fromkeys(infos):
                self._sockets.append(_bound(family, kind, protocol, where))
        except (OSError, UnicodeError) as error:
            for each in self._sockets:
                each.close()
            # UnicodeError: what cannot be the name of a host, such as one with an empty label.
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            detail = f"cannot be listened on: {reason}; give another address or port"
            raise InvalidInput([invalid(flag, str(address), detail)]) from error
        for each in self._sockets:
            loop.add_reader(each, self._accept, each)
        host, port = self._sockets[0].getsockname()[:2]
        return Address(host, port)

    async def close(self, grace_seconds: float) -> None:
        """Take no more connections, wait so long for what is in flight, and close those that are left."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.remove_reader(each)
            each.close()
        for task in self._opening:
            task.cancel()
        if self._server is None:
            return
        await asyncio.sleep(0)
        self._server.pre_shutdown()
        # shutdown() waits once for the handlers to end, and once more after it has cancelled them.
        await self._server.shutdown(grace_seconds / 2)
        for protocol in list(self._open):
            protocol.abort()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, where = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._log_now_and_then("connections cannot be accepted", error=error.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(_PAUSE_SECONDS, self._accept_again, listening)
                return
            self._admit(accepted, where[0] if isinstance(where, tuple) else "")

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        if self._server is None or not self._make_room(address):
            accepted.close()
            self._counts.connection("refused")
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = HttpProtocol(self, self._server, accepted, address, self.limits.keepalive_seconds)
        self._open.add(protocol)
        self._by_address[address] += 1
        loop = asyncio.get_running_loop()
        protocol.timer = loop.call_later(self.limits.head_seconds, protocol.abort)
        task = loop.create_task(self._connect(protocol))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, protocol: HttpProtocol) -> None:
        loop, seconds = asyncio.get_running_loop(), self.limits.head_seconds
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(lambda: protocol, protocol.socket)
            else:
                await loop.connect_accepted_socket(
                    lambda: protocol,
                    protocol.socket,
                    ssl=self._tls,
                    ssl_handshake_timeout=seconds,
                    ssl_shutdown_timeout=_GOODBYE_SECONDS,
                )
        except (Exception, asyncio.CancelledError):
            # No TLS, or gone again. It is not logged, since any client can do it as often as it likes.
            self.gone(protocol)
            protocol.socket.close()

    def _make_room(self, address: str) -> bool:
        """Return whether there is room for a connection of `address`, maybe in the place of another."""
        if self._by_address[address] >= self.limits.most_per_address:
            return self._evict([each for each in self._open if each.address == address], address)
        return len(self._open) < self.limits.most or self._evict(list(self._open), address)

    def _evict(self, candidates: list[HttpProtocol], address: str) -> bool:
        least = min(candidates, key=lambda each: (each.stage, each.since_seconds))
        self._log_now_and_then(
            "connections are closed to make room for others",
            open=len(self._open),
            of_this_address=self._by_address[address],
            address=address,
            remedy="find out who opens so many",
        )
        if least.stage == Stage.WORKING:
            return False
        self._counts.connection("evicted")
        self.gone(least)
        least.abort()
        return True

    def gone(self, protocol: HttpProtocol) -> None:
        """Count this connection no longer."""
        if protocol.timer is not None:
            protocol.timer.cancel()
            protocol.timer = None
        if protocol in self._open:
            self._open.remove(protocol)
            self._by_address[protocol.address] -= 1
            if not self._by_address[protocol.address]:
                del self._by_address[protocol.address]

    def _request(
        self, message: Any, payload: Any, http: web.RequestHandler, writer: Any, task: "asyncio.Task[None]"
    ) -> web.BaseRequest:
        loop, most = task.get_loop(), self._max_body_bytes
        return web.BaseRequest(message, payload, http, writer, task, loop, client_max_size=most)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = request.protocol
        assert isinstance(protocol, HttpProtocol)  # noqa: S101 - each was made in _admit
        if protocol.timer is not None:
            protocol.timer.cancel()
            protocol.timer = None
        protocol.stage = Stage.READING
        protocol.since_seconds = asyncio.get_running_loop().time()
        try:
            return await self._handler(request)
        finally:
            protocol.rest()

    def unreadable(
        self, protocol: HttpProtocol, status: int, exc: BaseException | None, message: str | None
    ) -> web.StreamResponse:
        """Answer what is no HTTP (`status` below 500) or what failed here; log it, and count it."""
        self._counts.request(status)
        if status >= 500:
            self._log.error("request failed", exc_info=exc, address=protocol.address)
            text = "internal fault; the server's log says more\n"
        else:
            reason = shown(" ".join((message or type(exc).__name__).split()))
            self._log_now_and_then("not HTTP", status=status, address=protocol.address, reason=reason)
            text = f"cannot be read as HTTP: {reason}\n"
        response = web.Response(status=status, text=text)
        response.force_close()
        return response

    def _log_now_and_then(self, event: str, **fields: Any) -> None:
        """Log what a client has brought about, and count what is not logged."""
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds - self._window_began_seconds >= _WINDOW_SECONDS:
            if self._lines > _MOST_LINES:
                self._log.warning("more of the same was not logged", lines=self._lines - _MOST_LINES)
            self._window_began_seconds, self._lines = now_seconds, 0
        self._lines += 1
        if self._lines <= _MOST_LINES:
            self._log.warning(event, **fields)


def _bound(family: int, kind: int, protocol: int, where: Any) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind(where)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening
