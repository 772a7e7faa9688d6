"""The server over real TLS and real sockets."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.serving.scheduling.site import SNAPSHOT, Gate, large
from tests.serving.story import HEAD, REVIEW, head, with_server
from tests.support.servers.live import until
from tests.support.servers.server import Running, World, running
from webhook.admission.cluster_view import ClusterView
from webhook.documents.field import InvalidInput
from webhook.runtime.settings import Address

JSON = {"Content-Type": "application/json"}


def test_an_admission_review_is_answered_over_tls(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url, data=REVIEW, headers=JSON) as response:
            assert response.status == 200
            assert response.content_type == "application/json"
            assert (await response.json())["response"]["allowed"] is True

    with_server(story, tmp_path)


def test_the_log_shows_when_the_server_serves_and_stops(tmp_path: Path) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        assert server.url

    with capture_logs() as logs:
        with_server(story, tmp_path)

    assert [each["event"] for each in logs] == ["serving", "stopping", "stopped"]


@pytest.mark.parametrize("sent", [pytest.param(b"", id="nothing"), pytest.param(HEAD[:30], id="part of a head")])
def test_a_connection_without_a_request_is_closed(tmp_path: Path, sent: bytes) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(sent)
        async with asyncio.timeout(20):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()

    with_server(story, tmp_path, read_timeout_seconds=0.2)


@pytest.mark.slow
def test_an_idle_connection_outlives_the_read_timeout(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD + REVIEW)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        _, silent = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        await silent.wait_closed()
        writer.write(head(2) + b"{}")
        async with asyncio.timeout(20):
            await reader.readuntil(b"HTTP/1.1 400")
        writer.close()

    with_server(story, tmp_path, read_timeout_seconds=0.3)


def test_connections_are_kept_alive(tmp_path: Path) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        for _time in range(3):
            writer.write(HEAD + REVIEW)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
            await reader.readexactly(int(length.removeprefix(b"Content-Length: ")))
        writer.close()

    with_server(story, tmp_path)


def test_every_nth_answer_closes_its_connection(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        closing = []
        for _ in range(4):
            async with client.post(server.url, data=REVIEW, headers=JSON) as response:
                closing.append(response.headers.get("Connection") == "close")
        assert closing == [False, True, False, True]

    with_server(story, tmp_path, answers_per_connection=2)


@pytest.mark.slow
def test_a_stuck_client_blocks_no_other_and_is_disconnected(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD + b"{")
        await writer.drain()
        async with client.post(server.url, data=REVIEW, headers=JSON) as response:
            assert response.status == 200
        assert b"408" in await reader.readline()
        writer.close()

    with_server(story, tmp_path, read_timeout_seconds=1)


def test_a_stopping_server_answers_the_reviews_that_wait_for_the_worker(tmp_path: Path) -> None:
    gate = Gate()
    world = World(cluster=ClusterView(SNAPSHOT, gate))

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async def status(number: int) -> int:
            async with client.post(server.url, data=large(number), headers=JSON) as response:
                return response.status

        loop, working = asyncio.get_running_loop(), asyncio.Event()

        def entered() -> None:
            loop.call_soon_threadsafe(working.set)

        gate.entered = entered
        answers = [asyncio.create_task(status(number)) for number in range(2)]
        try:
            await working.wait()
            await until(lambda: world.count("admissions_waiting") == 2)
            server.stop.set()
            with suppress(ConnectionRefusedError):
                while not server.done.done():
                    _, writer = await asyncio.open_connection(server.address.host, server.address.port)
                    writer.close()
        finally:
            gate.open.set()
        assert await asyncio.gather(*answers) == [200, 200]

    with_server(story, tmp_path, world)


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example.com"], ids=["an empty label", "a long label"])
def test_an_invalid_host_is_one_clear_error(tmp_path: Path, host: str) -> None:
    async def run() -> None:
        with pytest.raises(InvalidInput, match=r"--listen: Invalid value: .*give another address or port"):
            async with running(World(), tmp_path, listen=Address(host, 8443)):
                pass

    asyncio.run(run())


def test_a_port_in_use_is_one_clear_error(tmp_path: Path) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        taken = Address("127.0.0.1", server.address.port)
        with pytest.raises(InvalidInput, match=r"--listen: Invalid value: .*in use.*; give another address or port"):
            async with running(World(), tmp_path, listen=taken):
                pass

    with_server(story, tmp_path)
