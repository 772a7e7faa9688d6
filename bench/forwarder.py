"""One address in front of several servers: each new connection goes to the next of them, as with a Service."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count


@contextmanager
def forwarding(ports: Sequence[int]) -> Iterator[int]:
    """Forward connections to these ports of 127.0.0.1, which may be added later; yield the port in front."""
    started, turns = threading.Event(), count()
    found: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind = await asyncio.open_connection("127.0.0.1", ports[next(turns) % len(ports)])
        except (OSError, ZeroDivisionError):  # no server yet
            writer.close()
            return
        await asyncio.gather(copy(reader, behind[1]), copy(behind[0], writer))

    async def serve() -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(forward, "127.0.0.1", 0)
        found.append((server.sockets[0].getsockname()[1], asyncio.get_running_loop(), stop))
        started.set()
        async with server:
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="forwarder")
    thread.start()
    started.wait()
    port, loop, stop = found[0]
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
