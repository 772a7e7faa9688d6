"""The endpoint for reviews over TLS: what it accepts, and what it rejects unread."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.serving.story import HEAD, REVIEW, head, with_server
from tests.support.admission import policy_with
from tests.support.servers.server import Running, World
from webhook.serving.connection import Arrival, Connection
from webhook.serving.http.request_head import time_limits
from webhook.serving.scheduling.dispatcher import Dispatcher

JSON = {"Content-Type": "application/json"}


def test_a_content_type_with_parameters_is_json(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8"}
        async with client.post(server.url + "?timeout=5s", data=REVIEW, headers=headers) as response:
            assert response.status == 200

    with_server(story, tmp_path)


def test_a_client_that_expects_100_continue_gets_it(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url, data=REVIEW, headers=JSON, expect100=True) as response:
            assert response.status == 200
            assert (await response.json())["response"]["allowed"] is True

    with_server(story, tmp_path)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        pytest.param("POST", "/mutate", {"Content-Type": ""}, REVIEW, 415, id="no content type"),
        pytest.param("HEAD", "/mutate", {}, None, 405, id="the head alone"),
        pytest.param("POST", "/mutate", {"Content-Type": "text/plain"}, REVIEW, 415, id="another content type"),
        pytest.param("POST", "/mutate", JSON, b"{}", 400, id="no review"),
        pytest.param("GET", "/mutate", {}, None, 405, id="another method"),
        pytest.param("PUT", "/mutate", JSON, REVIEW, 405, id="yet another method"),
        pytest.param("POST", "/", JSON, REVIEW, 404, id="another path"),
        pytest.param("POST", "/mutate/x", JSON, REVIEW, 404, id="a longer path"),
        pytest.param("GET", "/metrics", {}, None, 404, id="the admin port's path"),
        pytest.param("POST", "/mutate", JSON, b" " * 5000, 413, id="a body over the limit"),
    ],
)
def test_a_request_that_is_no_admission_is_rejected_and_counted(
    tmp_path: Path, method: str, path: str, headers: dict[str, str], body: bytes | None, status: int
) -> None:
    world = World()

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        url = f"https://{server.address}{path}"
        async with client.request(method, url, data=body, headers=headers) as response:
            assert response.status == status
            assert await response.text() or method == "HEAD"

    with_server(story, tmp_path, world, max_body_bytes=4096)
    assert world.count("http_refused_requests_total", code=str(status)) == 1


def test_a_chunked_body_over_the_limit_is_rejected(tmp_path: Path) -> None:
    async def endless() -> object:
        for _ in range(100):
            yield b" " * 1024

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url, data=endless(), headers=JSON) as response:
            assert response.status == 413

    with_server(story, tmp_path, max_body_bytes=4096)


@pytest.mark.parametrize("limit", [4096, 65536])
def test_a_body_of_exactly_the_limit_is_answered_and_one_byte_more_is_rejected(tmp_path: Path, limit: int) -> None:
    """Whether its size is announced, or it comes in chunks."""

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async def chunks(body: bytes) -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]
                await asyncio.sleep(0)

        found = []
        for more in (0, 1):
            body = REVIEW.ljust(limit + more)
            for data in (body, chunks(body)):
                async with client.post(server.url, data=data, headers=JSON) as response:
                    found.append(response.status)
        assert found == [200, 200, 413, 413]

    with_server(story, tmp_path, max_body_bytes=limit)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
def test_a_compressed_body_is_rejected_unread(tmp_path: Path, encoding: str) -> None:
    """The decompressed size would be unbounded; API servers do not compress."""
    world = World()

    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(head(1_000_000, f"Content-Encoding: {encoding}"))
        assert await reader.readline() == b"HTTP/1.1 415 Unsupported Media Type\r\n"
        writer.transport.abort()

    with_server(story, tmp_path, world)
    assert world.count("http_refused_requests_total", code="415") == 1


def test_a_body_whose_encoding_is_identity_is_read(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        headers = JSON | {"Content-Encoding": "identity"}
        async with client.post(server.url, data=REVIEW, headers=headers) as response:
            assert response.status == 200

    with_server(story, tmp_path)


def test_a_path_that_is_not_a_url_is_not_found(tmp_path: Path) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD.replace(b"/mutate", b"//[x/mutate") + REVIEW)
        assert await reader.readline() == b"HTTP/1.1 404 Not Found\r\n"
        writer.close()
        await writer.wait_closed()

    with_server(story, tmp_path)


async def in_flight(server: Running, client: aiohttp.ClientSession, requests: int) -> None:
    """Return when so many requests are being answered."""
    text = ""
    async with asyncio.timeout(20):
        while f"admissions_in_flight {requests}.0" not in text:
            async with client.get(server.admin_url + "/metrics") as response:
                text = await response.text()


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(head(60_000) + b" " * 40_000, id="announced"),
        pytest.param(head(None) + b"9c40\r\n" + b" " * 40_000 + b"\r\n", id="in chunks, as large as may be"),
    ],
)
def test_large_bodies_wait_for_memory_and_small_ones_do_not(tmp_path: Path, first: bytes) -> None:
    world = World()

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        _, slow = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        slow.write(first)
        await in_flight(server, client, 1)
        async with client.post(server.url + "?timeout=200ms", data=large, headers=JSON) as response:
            assert response.status == 503
            assert "are in flight" in await response.text()
        async with client.post(server.url, data=REVIEW, headers=JSON) as response:
            assert response.status == 200

        waiting = asyncio.ensure_future(client.post(server.url, data=large, headers=JSON))
        await in_flight(server, client, 2)
        slow.transport.abort()
        async with await waiting as response:
            assert response.status == 200

    large = REVIEW + b" " * 50_000
    with_server(story, tmp_path, world, max_body_bytes=60_000, max_bytes_in_flight=100_000)
    assert world.count("http_refused_requests_total", code="503") == 1


def test_the_metric_has_the_number_of_admissions_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        assert world.count("admissions_waiting") == 0
        monkeypatch.setattr(Dispatcher, "waiting", 7)
        assert world.count("admissions_waiting") == 7

    with_server(story, tmp_path, world)


def test_large_bodies_release_their_memory_once_answered(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        for _ in range(2):
            async with client.post(server.url, data=large, headers=JSON) as response:
                assert response.status == 200

    large = REVIEW + b" " * 50_000
    with_server(story, tmp_path, max_body_bytes=60_000, max_bytes_in_flight=60_000)


@pytest.mark.parametrize(
    ("target", "whole_seconds", "scorer_seconds"),
    [
        pytest.param("/mutate?timeout=10s", 10.0, 9.5, id="half a second is kept for the way back"),
        pytest.param("/mutate?timeout=1s", 1.0, 0.8, id="of a short time a fifth"),
        pytest.param("/mutate?timeout=1m", 30.0, 29.5, id="longer than the registered timeout"),
        pytest.param("/mutate", 30.0, None, id="no time given"),
        pytest.param("/mutate?timeout=soon", 30.0, None, id="no duration"),
    ],
)
def test_the_scorer_gets_the_timeout_minus_a_margin(
    target: str, whole_seconds: float, scorer_seconds: float | None
) -> None:
    arrival = time_limits(target, 30.0).arrival(Connection(), "", 1000.0)

    assert arrival.arrived_seconds == 1000.0
    assert arrival.overdue_seconds == 1000.0 + whole_seconds
    assert arrival.deadline_seconds == (None if scorer_seconds is None else pytest.approx(1000.0 + scorer_seconds))


def test_a_single_body_fits_any_limit(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url, data=REVIEW, headers=JSON) as response:
            assert response.status == 200

    with_server(story, tmp_path, max_bytes_in_flight=1)


def test_an_announced_body_that_does_not_arrive_reserves_no_memory(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        slow = [await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls) for _ in "abc"]
        for _, writer in slow:
            writer.write(head(60_000) + b"{")
        await in_flight(server, client, 3)
        for length in (0, 50_000):
            async with client.post(server.url, data=REVIEW + b" " * length, headers=JSON) as response:
                assert response.status == 200
        for _, writer in slow:
            writer.transport.abort()

    with_server(story, tmp_path, max_body_bytes=60_000, max_bytes_in_flight=60_000)


def test_review_whose_slice_has_ended_has_waited_since_it_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(_: Dispatcher, body: bytes, arrival: Arrival) -> None:
        arrival.connection.sliced_seconds = arrival.arrived_seconds - next(earlier)

    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        for _ in range(2):
            async with client.post(server.url, data=REVIEW, headers=JSON) as response:
                assert response.status == 200

    earlier, world = iter((7.0, 0.0)), World(clock=time.monotonic)
    monkeypatch.setattr(Dispatcher, "answer_at_once", ended)
    with_server(story, tmp_path, world)
    assert [round(record.duration_ms / 7000) for record in world.records] == [1, 0]


async def answered_after_its_record(server: Running, client: aiohttp.ClientSession, world: World, body: bytes) -> int:
    """Return the status of the answer to `body`, which waits until the gate of `world` is open."""
    assert world.gate is not None
    waiting = asyncio.ensure_future(client.post(server.url, data=body, headers=JSON))
    async with asyncio.timeout(20):
        while not world.records:
            await in_flight(server, client, 1)
    for _ in range(3):
        await in_flight(server, client, 1)
    assert not waiting.done()
    world.gate.set()
    async with await waiting as response:
        return response.status


@pytest.mark.parametrize(
    ("mode", "spaces"),
    [
        pytest.param("enforce", 50_000, id="large"),
        pytest.param("shadow", 100_000, id="beyond the limit, in shadow mode"),
    ],
)
def test_answer_waits_for_its_audit_record(tmp_path: Path, mode: str, spaces: int) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        world.gate = asyncio.Event()
        assert await answered_after_its_record(server, client, world, REVIEW + b" " * spaces) == 200

    world = World(policy=policy_with(mode=mode))
    with_server(story, tmp_path, world, max_body_bytes=60_000)


def test_requests_that_are_answered_or_refused_are_no_longer_in_flight(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        for spaces, status in ((50_000, 200), (100_000, 413)):
            async with client.post(server.url, data=REVIEW + b" " * spaces, headers=JSON) as response:
                assert response.status == status
        await in_flight(server, client, 0)

    with_server(story, tmp_path, max_body_bytes=60_000)


@pytest.mark.parametrize(("spaces", "connection"), [(50_000, None), (100_000, "close")])
def test_connection_with_a_body_that_is_not_read_to_its_end_is_closed(
    tmp_path: Path, spaces: int, connection: str | None
) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url, data=REVIEW + b" " * spaces, headers=JSON) as response:
            assert (response.status, response.headers.get("Connection")) == (200, connection)

    with_server(story, tmp_path, World(policy=policy_with(mode="shadow")), max_body_bytes=60_000)


@pytest.mark.parametrize("spaces", [0, 30_000, 50_000])
def test_each_answer_counts_once_to_the_last_of_its_connection(tmp_path: Path, spaces: int) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        found = []
        for _ in range(4):
            async with client.post(server.url, data=REVIEW + b" " * spaces, headers=JSON) as response:
                found.append(response.headers.get("Connection"))
        assert found == [None, "close", None, "close"]

    with_server(story, tmp_path, answers_per_connection=2)
