"""The event loop of the server: uvloop, with a workaround for failed connections."""

import asyncio
from collections.abc import Callable
from typing import Any


def event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of the event loop: that of uvloop if it is installed, or else that of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop

    class Loop(uvloop.Loop):
        """Detaches a socket over which it could not connect, because libuv has closed its descriptor.

        uvloop does not detach the socket if the peer resets the connection in the first iteration of the loop. When the
        socket is garbage-collected, its descriptor is closed a second time, and may be that of the audit log by then.
        aiohttp connects over such sockets.

        Source: github.com/MagicStack/uvloop/issues/653
        """

        async def create_connection(self, *arguments: Any, **options: Any) -> Any:
            """Connect as the base class does."""
            try:
                return await super().create_connection(*arguments, **options)
            except BaseException:
                if (given := options.get("sock")) is not None:
                    given.detach()
                raise

    return Loop
