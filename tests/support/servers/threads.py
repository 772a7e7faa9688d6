"""Servers and event loops in threads of their own, for tests that wait for what is in them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any, TypeVar

T = TypeVar("T")


class LocalServer(ThreadingHTTPServer):
    """An HTTP server with a thread for each connection."""

    # Of the default of 5 the kernel drops the next connection, which the client tries again after a second.
    request_queue_size = 128


@contextmanager
def served_in_thread(server: BaseServer) -> Iterator[None]:
    """Let the server answer until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002}, name=type(server).__name__)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def event_loop_in_thread(
    name: str, run: Callable[[Callable[[T], None], asyncio.Event], Coroutine[Any, Any, None]]
) -> Iterator[T]:
    """Run `run(started, stop)` in an event loop; yield what it passes to `started`, and set `stop` after the block."""
    began, found = threading.Event(), list[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def run_once() -> None:
        stop = asyncio.Event()

        def started(value: T) -> None:
            found.append((value, asyncio.get_running_loop(), stop))
            began.set()

        await run(started, stop)

    def in_thread() -> None:
        try:
            asyncio.run(run_once())
        finally:
            began.set()

    thread = threading.Thread(target=in_thread, name=name)
    thread.start()
    began.wait()
    try:
        assert found, f"{name}: it ended at its start"
        yield found[0][0]
    finally:
        for _, loop, stop in found:
            loop.call_soon_threadsafe(stop.set)
        thread.join()
