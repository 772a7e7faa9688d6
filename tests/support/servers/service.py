"""A TCP address in front of replicas, as a Service is: it knows HTTP of their readiness probes alone.

New connections go to the ready replicas in turn. A connection that is open stays with its replica, ready or not, as
with kube-proxy. The end and the loss of a connection are passed on.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.servers.threads import event_loop_in_thread

_PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Backend:
    """The ports of a replica on loopback."""

    port: int
    admin_port: int


@dataclass(slots=True)
class Service:
    """The address of the replicas in `backends`, which may be changed at any time; `poll_seconds` between probes."""

    poll_seconds: float
    port: int = 0
    backends: list[Backend] = field(default_factory=list)
    _ready: frozenset[Backend] = frozenset()
    _turn: int = 0
    _connections: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def ready(self) -> int:
        """Return the number of ready replicas."""
        return len(self._ready.intersection(self.backends))

    async def run(self, started: "Callable[[Service], None]", stop: asyncio.Event) -> None:
        """Forward connections until `stop`."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        started(self)
        probing = asyncio.create_task(self._probe())
        await stop.wait()
        server.close()
        for task in (probing, *self._connections):
            task.cancel()
        await asyncio.gather(probing, *self._connections, return_exceptions=True)

    async def _probe(self) -> None:
        while True:
            backends = list(self.backends)
            answers = await asyncio.gather(*(_is_ready(each) for each in backends))
            self._ready = frozenset(each for each, ready in zip(backends, answers, strict=True) if ready)
            await asyncio.sleep(self.poll_seconds)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            backend = self._next()
            if backend is not None:
                with suppress(OSError):
                    there = await asyncio.open_connection("127.0.0.1", backend.port)
                    await _joined((reader, writer), there)
        finally:
            writer.close()

    def _next(self) -> Backend | None:
        ready = [each for each in self.backends if each in self._ready]
        self._turn += 1
        return ready[self._turn % len(ready)] if ready else None


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _joined(here: Stream, there: Stream) -> None:
    """Pass bytes on in both directions until one side ends the connection."""
    directions = [
        asyncio.create_task(_pass_on(here[0], there[1])),
        asyncio.create_task(_pass_on(there[0], here[1])),
    ]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in directions:
            each.cancel()
        there[1].close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()


async def _is_ready(backend: Backend) -> bool:
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection("127.0.0.1", backend.admin_port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in line


@contextmanager
def service(poll_seconds: float = 0.1) -> Iterator[Service]:
    """Return a Service that forwards in a thread of its own; its `backends` are empty."""
    with event_loop_in_thread("service", Service(poll_seconds).run) as found:
        yield found
