"""A listener, and connections to it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import Running, World, review_bytes, running

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
HEAD = (
    f"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: {len(REVIEW)}\r\n\r\n"
).encode()
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Story = Callable[[Running, World], Awaitable[None]]


async def answered(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


def with_server(story: Story, folder: Path, **settings: object) -> World:
    world = World()

    async def run() -> None:
        async with running(world, folder, **settings) as server, asyncio.timeout(60):
            await story(server, world)

    asyncio.run(run())
    return world


async def connect(server: Running, tls: ssl.SSLContext | None = None) -> Stream:
    return await asyncio.open_connection(server.address.host, server.address.port, ssl=tls or server.tls)


async def until_closed(stream: Stream) -> None:
    reader, writer = stream
    with suppress(ConnectionError):
        while await reader.read(65536):
            pass
    writer.transport.abort()


def drop(*streams: Stream) -> None:
    for _, writer in streams:
        writer.transport.abort()
