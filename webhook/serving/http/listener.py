"""A listener that enforces connection limits at accept, before TLS or HTTP use memory.

There is a limit for all connections and one for each address. At the limit of its address, a new connection evicts
another one of the same address. At the limit for all connections, it evicts one of the address that has the most, so an
address with few connections always gets a place. The order of eviction is: a connection that has not sent the head of a
request yet, an idle one, one whose request is still being read, one whose request waits for its turn. Among these, the
one that has been in its stage for the longest time is evicted. A connection whose request is being processed is never
evicted.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any

import structlog
from aiohttp import web

from webhook.documents.field import InvalidInput, invalid, shown
from webhook.runtime.settings import Address
from webhook.serving.clock import LimitedLog
from webhook.serving.connection import Stage
from webhook.serving.http.arrivals import BACKLOG, Arrivals, Limits, bound_socket
from webhook.serving.http.protocol import AnswerAtOnce, HttpProtocol, protocol_of

# After accepting this many, or after beginning so many TLS handshakes, the loop serves the open connections.
_ACCEPTED_AT_ONCE = 256
_BEGUN_AT_ONCE = 8
# When the process is out of file descriptors, accepting again at once would fail again.
_PAUSE_SECONDS = 0.2
_TLS_SHUTDOWN_SECONDS = 5.0
# A stopping listener waits this long for requests that arrive, and for the first ones of connections just opened.
_ARRIVING_SECONDS = 1.0
_PAUSE_BETWEEN_LOOKS_SECONDS = 0.01


class Listener:
    """Listens on one address and calls `handler` for each request that `at_once` does not answer.

    `when_written` calls a function once the audit record of the last response by `at_once` is written or has failed.
    `count_failure` gets the status of the response to a request that cannot be read. `count_closed` gets the reason why
    a connection is closed: `evicted` (for a new one), `refused` (at the limit) or `untrusted` (by its certificate).
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: Limits,
        *,
        at_once: AnswerAtOnce | None = None,
        when_written: Callable[[Callable[[Exception | None], None]], None] = lambda _: None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        count_failure: Callable[[int], None] = lambda _: None,
        count_closed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.limits = limits
        self._handler = handler
        self._at_once, self._when_written = at_once, when_written
        self._tls = tls
        self._count_failure, self._count_closed = count_failure, count_closed
        self._open: set[HttpProtocol] = set()
        self._by_address: dict[str, set[HttpProtocol]] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._arrivals: Arrivals[socket.socket] = Arrivals()
        self._paused: set[socket.socket] = set()
        self._log = structlog.get_logger()
        self._limited_log = LimitedLog()
        self._server: web.Server | None = None

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    async def start(self, flag: str, address: Address) -> Address:
        """Listen on `address`, the value of `flag`. Return the address with the resolved port.

        Raises:
            InvalidInput: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        # The handler of a request is cancelled when its client disconnects.
        self._server = web.Server(self._answer, handler_cancellation=True)
        try:
            infos = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, where in dict.fromkeys((info[0], info[4]) for info in infos):
                self._sockets.append(bound_socket(family, where))
        except (OSError, UnicodeError) as error:
            for each in self._sockets:
                each.close()
            # UnicodeError: an invalid host name, such as one with an empty label.
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            detail = f"cannot be listened on: {reason}; give another address or port"
            raise InvalidInput([invalid(flag, str(address), detail)]) from error
        for each in self._sockets:
            loop.add_reader(each, self._accept, each)
        host, port = self._sockets[0].getsockname()[:2]
        return Address(host, port)

    async def close(self, grace_seconds: float) -> None:
        """Accept no more connections, wait up to `grace_seconds` for requests in flight, and close the rest.

        The first request on a connection that has just been opened is still answered, and so is a request that has
        arrived in part, because the API server does not retry them.
        """
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            # To their clients, connections in the backlog are open.
            for _ in range(BACKLOG // _BEGUN_AT_ONCE):
                self._accept(each)
                self._begin()
            loop.remove_reader(each)
            each.close()
        while self._arrivals:
            self._begin()
        end = loop.time() + min(grace_seconds, _ARRIVING_SECONDS)
        while loop.time() < end and any(each.is_arriving for each in self._open):  # noqa: ASYNC110
            # An event would have to be set by each request.
            await asyncio.sleep(_PAUSE_BETWEEN_LOOKS_SECONDS)
        for task in self._opening:
            task.cancel()
        if self._server is None:
            return
        await asyncio.sleep(0)
        self._server.pre_shutdown()
        # shutdown() waits for the handlers twice: before and after it cancels them.
        await self._server.shutdown(grace_seconds / 2)
        for protocol in list(self._open):
            protocol.abort()

    def _accept(self, listening: socket.socket) -> None:
        is_begun_soon = len(self._arrivals) > 0
        for _ in range(_ACCEPTED_AT_ONCE):
            if self._arrivals.is_full:
                asyncio.get_running_loop().remove_reader(listening)
                self._paused.add(listening)
                break
            try:
                accepted, where = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            except OSError as error:
                self._limited_log.warning("connections cannot be accepted", error=error.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(_PAUSE_SECONDS, self._accept_again, listening)
                break
            if lost := self._arrivals.put(accepted, where[0] if isinstance(where, tuple) else ""):
                self._refuse(lost)
        if not is_begun_soon:
            self._begin()

    def _begin(self) -> None:
        """Begin the next handshakes, then let the event loop serve the open connections before further handshakes."""
        for _ in range(min(_BEGUN_AT_ONCE, len(self._arrivals))):
            self._admit(*self._arrivals.take())
        if self._arrivals:
            asyncio.get_running_loop().call_soon(self._begin)
        while self._paused and not self._arrivals.is_full:
            self._accept_again(self._paused.pop())

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        if self._server is None or not self._ensure_capacity(address):
            self._refuse(accepted)
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = HttpProtocol(
            self._server,
            accepted,
            address,
            self.limits.keepalive_seconds,
            at_once=self._at_once,
            when_written=self._when_written,
            forget=self._forget,
            answer_failure=self._answer_failure,
        )
        self._open.add(protocol)
        self._by_address.setdefault(address, set()).add(protocol)
        loop = asyncio.get_running_loop()
        protocol.timer = loop.call_later(self.limits.head_seconds, protocol.abort)
        task = loop.create_task(self._connect(protocol))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _refuse(self, accepted: socket.socket) -> None:
        accepted.close()
        self._count_closed("refused")

    async def _connect(self, protocol: HttpProtocol) -> None:
        loop, seconds = asyncio.get_running_loop(), self.limits.head_seconds
        try:
            options: dict[str, Any] = {}
            if self._tls is not None:
                times = {"ssl_handshake_timeout": seconds, "ssl_shutdown_timeout": _TLS_SHUTDOWN_SECONDS}
                options = {"ssl": self._tls(), **times}
            await loop.connect_accepted_socket(lambda: protocol, protocol.socket, **options)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                self._count_closed("untrusted")
                self._limited_log.warning(
                    "client certificate refused", address=protocol.connection.address, reason=error.verify_message
                )
            # Any other failed TLS handshake or an early disconnect is not logged: any client can cause it at will.
            self._forget(protocol)
            protocol.socket.close()

    def _ensure_capacity(self, address: str) -> bool:
        """Return whether a connection of `address` is accepted. At a limit, evict another connection for it."""
        held = len(self._by_address.get(address, ()))
        if held >= self.limits.most_per_address:
            return self._evict([address], address)
        if len(self._open) < self.limits.most:
            return True
        most = max(map(len, self._by_address.values()))
        largest = [each for each, of_it in self._by_address.items() if len(of_it) == most]
        return self._evict(largest if held < most else [address], address)

    def _evict(self, addresses: Sequence[str], address: str) -> bool:
        candidates = chain.from_iterable(self._by_address[each] for each in addresses)
        least = min(candidates, key=lambda each: (each.connection.stage, each.connection.since_seconds))
        held = len(self._by_address.get(address, ()))
        counts = {"open": len(self._open), "of_this_address": held, "address": address}
        remedy = "find out who opens so many"
        self._limited_log.warning("connections are closed to make room for others", **counts, remedy=remedy)
        if least.connection.stage == Stage.PROCESSING:
            return False
        self._count_closed("evicted")
        self._forget(least)
        least.abort()
        return True

    def _forget(self, protocol: HttpProtocol) -> None:
        """Stop counting this connection."""
        if protocol.timer is not None:
            protocol.timer.cancel()
            protocol.timer = None
        if protocol in self._open:
            self._open.remove(protocol)
            of_address = self._by_address[protocol.connection.address]
            of_address.remove(protocol)
            if not of_address:
                del self._by_address[protocol.connection.address]

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = protocol_of(request)
        protocol.begin(Stage.READING)
        protocol.connection.since_seconds = asyncio.get_running_loop().time()
        try:
            return await self._handler(request)
        finally:
            protocol.mark_idle()

    def _answer_failure(
        self, protocol: HttpProtocol, status: int, exc: BaseException | None, message: str | None
    ) -> web.Response:
        """Log, count and answer a request that is not HTTP (`status` below 500) or failed internally."""
        self._count_failure(status)
        if status >= 500:
            self._log.error("request failed", exc_info=exc, address=protocol.connection.address)
            text = "internal fault; the server's log says more\n"
        else:
            reason = shown(" ".join((message or type(exc).__name__).split()))
            self._limited_log.warning("not HTTP", status=status, address=protocol.connection.address, reason=reason)
            text = f"cannot be read as HTTP: {reason}\n"
        response = web.Response(status=status, text=text)
        response.force_close()
        return response
