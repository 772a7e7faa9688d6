"""A server over real TLS, and clients that talk to it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import (
    Running,
    World,
    review_bytes,
    running,
)

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
HEAD = (
    f"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: {len(REVIEW)}\r\n\r\n"
).encode()
Story = Callable[[Running, aiohttp.ClientSession], Awaitable[None]]


def with_server(story: Story, folder: Path, world: World | None = None, **settings: object) -> None:
    """Run `story` with a running server and a client that trusts its CA."""

    async def run() -> None:
        async with running(world or World(), folder, **settings) as server:
            connector = aiohttp.TCPConnector(ssl=server.tls)
            async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(30)) as client:
                await story(server, client)

    asyncio.run(run())


def head(length: int | None, *more: str) -> bytes:
    """The head of a request with a body of `length`, or in chunks."""
    body = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = ["POST /mutate HTTP/1.1", "Host: webhook", "Content-Type: application/json", body, *more, "", ""]
    return "\r\n".join(lines).encode()
