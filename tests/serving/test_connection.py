"""The stage of a connection decides whether it is evicted."""

import asyncio
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from tests.serving.http.streams import HEAD, REVIEW, answered, connect, drop, until_closed, with_server
from tests.support.servers.server import Running, World
from webhook.serving.connection import Stage
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.listener import Listener
from webhook.serving.http.protocol import HttpProtocol

LIMITS = Limits(most=8, most_per_address=8, head_seconds=60.0, keepalive_seconds=60.0)


def held_by(listener: Listener, address: str, stage: Stage) -> HttpProtocol:
    """A connection of `address` that `listener` has accepted."""
    listener._server, before = web.Server(answered), set(listener._open)
    with socket.socket() as accepted:
        listener._admit(accepted, address)
    (held,) = listener._open - before
    held.connection.stage = stage
    return held


def test_a_connection_whose_request_is_processed_is_not_evicted(tmp_path: Path) -> None:
    async def story(server: Running, world: World) -> None:
        world.gate, decided = asyncio.Event(), asyncio.Event()
        world.audit = lambda _: decided.set()
        busy = await connect(server)
        busy[1].write(HEAD + REVIEW)
        await decided.wait()

        with suppress(OSError):
            await until_closed(await connect(server))
        assert world.count("connections_closed_total", port="webhook", result="refused") == 1

        world.gate.set()
        assert (await busy[0].readline()).startswith(b"HTTP/1.1 200")
        drop(busy)

    with_server(story, tmp_path, max_connections=1)


def test_a_connection_whose_request_waits_for_its_turn_is_evicted_after_all_others() -> None:
    async def story() -> None:
        listener = Listener(answered, replace(LIMITS, most=3))
        queued, processing, _idle = [
            held_by(listener, f"10.0.0.{stage.value}", stage) for stage in (Stage.QUEUED, Stage.PROCESSING, Stage.IDLE)
        ]

        assert listener._ensure_capacity("10.0.0.9")
        assert listener._open == {queued, processing}

        held_by(listener, "10.0.0.9", Stage.PROCESSING)
        assert listener._ensure_capacity("10.0.0.8")
        assert queued not in listener._open

        held_by(listener, "10.0.0.8", Stage.PROCESSING)
        assert not listener._ensure_capacity("10.0.0.7")

    asyncio.run(story())


def test_at_the_limit_the_address_with_the_most_connections_loses_one() -> None:
    async def story() -> None:
        listener = Listener(answered, replace(LIMITS, most=5))
        few = [held_by(listener, "10.0.0.1", Stage.OPENING) for _ in range(2)]
        many = [held_by(listener, "10.0.0.2", Stage.QUEUED) for _ in range(3)]

        assert listener._ensure_capacity("10.0.0.3")

        assert few[0] in listener._open
        assert many[0] not in listener._open

    asyncio.run(story())
