"""The event loop of the server: uvloop, with the end of a failed connection mended."""

import asyncio
from collections.abc import Callable
from typing import Any


def event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the event loop: uvloop if it is installed, else that of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop

    class Loop(uvloop.Loop):
        """Detaches a socket over which it could not connect, since libuv has closed its descriptor.

        If the peer resets a connection in the first turn of the loop, uvloop does not: when the socket is collected, it
        closes the number again, which may be that of the audit log by then. aiohttp connects over such sockets.

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
