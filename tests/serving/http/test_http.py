"""The server over real TLS and real sockets."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import Running, World, review_bytes, running
from webhook.documents.field import InvalidInput
from webhook.runtime.settings import Address
from webhook.serving.http.request_head import time_limits

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
JSON = {"Content-Type": "application/json"}
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


def head(length: int | None, *more: str) -> bytes:
    """The head of a request with a body of `length`, or in chunks."""
    body = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = ["POST /mutate HTTP/1.1", "Host: webhook", "Content-Type: application/json", body, *more, "", ""]
    return "\r\n".join(lines).encode()


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
    timeouts = time_limits(target, 30.0).timeouts(1000.0)

    assert timeouts.arrived_seconds == 1000.0
    assert timeouts.overdue_seconds == 1000.0 + whole_seconds
    assert timeouts.deadline_seconds == (None if scorer_seconds is None else pytest.approx(1000.0 + scorer_seconds))


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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=lambda version: version.name)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_before_1_2_is_rejected(tmp_path: Path, version: ssl.TLSVersion) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        old = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = version
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(server.address.host, server.address.port, ssl=old)

    with_server(story, tmp_path)


def test_a_stuck_client_blocks_no_other_and_is_disconnected(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD + b"{")
        await writer.drain()
        async with client.post(server.url, data=REVIEW, headers=JSON) as response:
            assert response.status == 200
        assert b"408" in await reader.readline()
        writer.close()

    with_server(story, tmp_path, read_timeout_seconds=0.2)


def test_health_readiness_and_metrics_are_on_the_admin_port(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        for path in ("/healthz", "/readyz"):
            async with client.get(server.admin_url + path) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
        async with client.get(server.admin_url + "/metrics") as response:
            assert response.content_type == "text/plain"
            assert "placement_webhook_admissions_in_flight 0.0" in await response.text()
        async with client.post(server.admin_url + "/mutate", data=REVIEW, headers=JSON) as response:
            assert response.status == 404

    with_server(story, tmp_path)


def test_a_stopping_server_is_not_ready_finishes_requests_in_flight_and_exits(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD + REVIEW[:10])
        await writer.drain()
        async with client.get(server.admin_url + "/metrics") as response:
            while "admissions_in_flight 1.0" not in await response.text():
                response = await client.get(server.admin_url + "/metrics")

        server.stop.set()
        status = 200
        while status == 200:
            async with client.get(server.admin_url + "/readyz") as response:
                status = response.status
        assert status == 503
        async with client.get(server.admin_url + "/healthz") as response:
            assert response.status == 200

        writer.write(REVIEW[10:])
        await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"Connection: close" in answer
        assert b'"allowed":true' in answer
        writer.close()
        await server.done

    with_server(story, tmp_path, shutdown_delay_seconds=0.3)


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
