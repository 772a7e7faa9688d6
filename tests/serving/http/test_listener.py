"""Connections are limited when accepted, and a new one evicts the least needed one."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web

from tests.serving.http.streams import HEAD, REVIEW, Stream, answered, connect, drop, until_closed, with_server
from tests.support.servers.loopback import server_context
from tests.support.servers.server import LOOPBACK, Running, World
from tests.support.tls.certificates import FRESH, server_of
from webhook.documents.field import InvalidInput
from webhook.runtime.settings import Address
from webhook.serving.connection import Stage
from webhook.serving.http import arrivals
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.listener import Listener
from webhook.serving.http.protocol import protocol_of

LIMITS = Limits(most=8, most_per_address=8, head_seconds=60.0, keepalive_seconds=60.0)
PARTIAL_RECORD = b"\x16\x03\x01\x40\x00\x01" + bytes(64)


async def connect_without_tls(server: Running) -> Stream:
    return await asyncio.open_connection(server.address.host, server.address.port)


async def status_on(stream: Stream) -> bytes:
    """Send a review on a connection; the status of its answer."""
    reader, writer = stream
    writer.write(HEAD + REVIEW)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
    await reader.readexactly(int(length.removeprefix(b"Content-Length: ")))
    return head[9:12]


def test_a_new_connection_evicts_the_longest_idle_one(tmp_path: Path) -> None:
    async def story(server: Running, _: World) -> None:
        first, second, third = [await connect(server) for _ in range(3)]
        for stream in (first, second, third, first):
            assert await status_on(stream) == b"200"

        newcomer = await connect(server)

        assert await status_on(newcomer) == b"200"
        await until_closed(second)
        assert await status_on(first) == b"200"
        drop(first, third, newcomer)

    world = with_server(story, tmp_path, max_connections=3)
    assert world.count("connections_closed_total", port="webhook", result="evicted") == 1


def test_a_connection_without_a_request_is_evicted_before_an_idle_one(tmp_path: Path) -> None:
    async def story(server: Running, _: World) -> None:
        idle = await connect(server)
        assert await status_on(idle) == b"200"
        silent = await connect(server)
        handshaking = await connect_without_tls(server)
        handshaking[1].write(PARTIAL_RECORD)

        newcomers = [await connect(server) for _ in range(2)]
        for newcomer in newcomers:
            assert await status_on(newcomer) == b"200"

        await until_closed(silent)
        await until_closed(handshaking)
        assert await status_on(idle) == b"200"
        drop(idle, *newcomers)

    with_server(story, tmp_path, max_connections=3)


def test_a_flood_of_partial_handshakes_blocks_no_client(tmp_path: Path) -> None:
    async def story(server: Running, world: World) -> None:
        flood = []
        for _ in range(100):
            stream = await connect_without_tls(server)
            stream[1].write(PARTIAL_RECORD)
            flood.append(stream)
        newcomer = await connect(server)
        assert await status_on(newcomer) == b"200"
        assert world.count("connections", port="webhook") <= 8
        drop(newcomer, *flood)

    with_server(story, tmp_path, max_connections=8)


def test_one_address_has_its_own_limit(tmp_path: Path) -> None:
    """Within it, a new connection of the address takes the place of another of the same address."""

    async def story(server: Running, world: World) -> None:
        streams = [await connect(server) for _ in range(2)]
        for stream in streams:
            assert await status_on(stream) == b"200"
        newcomer = await connect(server)
        assert await status_on(newcomer) == b"200"
        await until_closed(streams[0])
        assert world.count("connections", port="webhook") == 2
        drop(newcomer, streams[1])

    with_server(story, tmp_path, max_connections=100, max_connections_per_address=2)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"\x00\x01\x02 nonsense\r\n\r\n", b"400", id="no HTTP"),
        pytest.param(b"POST /mutate HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", b"400", id="a header too long"),
        pytest.param(b"POST /mutate HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400", id="no length"),
    ],
)
def test_a_request_that_is_not_http_is_one_log_line_and_counted(tmp_path: Path, sent: bytes, status: bytes) -> None:
    async def story(server: Running, _: World) -> None:
        stream = await connect(server)
        stream[1].write(sent)
        answer = await stream[0].read()
        assert answer[9:12] == status
        assert len(answer) < 600
        drop(stream)

    with structlog.testing.capture_logs() as logs:
        world = with_server(story, tmp_path)
    (entry,) = [log for log in logs if log["event"] == "not HTTP"]
    assert (entry["status"], entry["address"]) == (400, "127.0.0.1")
    assert len(str(entry)) < 600
    assert world.count("http_refused_requests_total", code="400") == 1


@pytest.mark.slow
def test_log_lines_that_clients_cause_are_limited(tmp_path: Path) -> None:
    async def story(server: Running, _: World) -> None:
        for _time in range(50):
            stream = await connect(server)
            stream[1].write(b"nonsense\r\n\r\n")
            await until_closed(stream)

    with structlog.testing.capture_logs() as logs:
        world = with_server(story, tmp_path)
    assert 0 < len([log for log in logs if log["event"] == "not HTTP"]) <= 40
    assert world.count("http_refused_requests_total", code="400") == 50


def test_the_admin_port_has_64_connections_and_32_of_one_address(tmp_path: Path) -> None:
    async def story(server: Running, world: World) -> None:
        host, _, port = server.admin_url.removeprefix("http://").rpartition(":")
        held, counted = [], []
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            local = (source, 0)
            held += [await asyncio.open_connection(host, int(port), local_addr=local) for _ in range(33)]
            reader, writer = await asyncio.open_connection(host, int(port), local_addr=local)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: admin\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            held.append((reader, writer))
            counted.append(world.count("connections", port="admin"))
        assert counted == [32, 64, 64]
        drop(*held)

    with_server(story, tmp_path)


def test_the_admin_port_answers_while_a_client_holds_its_connections(tmp_path: Path) -> None:
    async def story(server: Running, world: World) -> None:
        host, _, port = server.admin_url.removeprefix("http://").rpartition(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(100)]
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: admin\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert world.count("connections", port="admin") <= 64
        drop(*held, (reader, writer))

    with_server(story, tmp_path)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", b"404"), ("POST", "/healthz", b"405")])
def test_the_admin_port_has_three_paths_to_get(tmp_path: Path, method: str, path: str, status: bytes) -> None:
    async def story(server: Running, _: World) -> None:
        host, _colon, port = server.admin_url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: admin\r\n\r\n".encode())
        assert (await reader.readline())[9:12] == status
        drop((reader, writer))

    with_server(story, tmp_path)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            b"POST /mutate HTTP/1.1\r\n" + b"X-Header: %s\r\n" % (b"x" * 4000) * 40, id="a head without an end"
        ),
        pytest.param(
            b"POST /mutate HTTP/1.1\r\nHost: a\r\n" + b"X-Header: %s\r\n" % (b"x" * 2000) * 40 + b"\r\n",
            id="a long head",
        ),
        pytest.param((HEAD + REVIEW) * 20, id="requests ahead of their answers"),
    ],
)
def test_the_memory_of_a_connection_is_limited(tmp_path: Path, sent: bytes) -> None:
    """An API server sends ten headers, and no request before the last is answered."""

    async def story(server: Running, world: World) -> None:
        stream = await connect(server)
        stream[1].write(sent)
        await until_closed(stream)
        another = await connect(server)
        assert await status_on(another) == b"200"
        assert world.count("connections", port="webhook") == 1
        drop(another)

    with_server(story, tmp_path)


def test_a_head_of_32_kib_is_answered(tmp_path: Path) -> None:
    def head(size_bytes: int) -> bytes:
        """A head with headers of `size_bytes`, without what HTTP puts between them."""
        headers = [line.partition(b": ")[::2] for line in HEAD.splitlines()[1:-1]]
        headers += [(b"x-header", b"x" * 1000)] * 20
        left = size_bytes - sum(len(name) + len(value) for name, value in headers)
        headers += [(b"x-header", b"x" * (left // 4 - 8))] * 3
        headers.append((b"x-header", b"x" * (left - 3 * (left // 4) - 8)))
        return HEAD.splitlines()[0] + b"\r\n" + b"".join(b"%s: %s\r\n" % each for each in headers) + b"\r\n"

    async def story(server: Running, _: World) -> None:
        answered, refused = await connect(server), await connect(server)
        answered[1].write(head(32 * 1024) + REVIEW)
        assert (await answered[0].readuntil(b"\r\n\r\n"))[9:12] == b"200"
        refused[1].write(head(32 * 1024 + 1) + REVIEW)
        await until_closed(refused)
        drop(answered)

    with_server(story, tmp_path)


def test_a_large_body_does_not_count_as_head(tmp_path: Path) -> None:
    async def story(server: Running, _: World) -> None:
        stream = await connect(server)
        for _time in range(3):
            body = REVIEW + b" " * 1_000_000
            stream[1].write(HEAD.replace(b"Length: %d" % len(REVIEW), b"Length: %d" % len(body)) + body)
            answer = await stream[0].readuntil(b"\r\n\r\n")
            assert answer[9:12] == b"200"
            length = next(line for line in answer.split(b"\r\n") if line.startswith(b"Content-Length: "))
            await stream[0].readexactly(int(length.removeprefix(b"Content-Length: ")))
        drop(stream)

    with_server(story, tmp_path)


def test_a_port_is_free_again_where_another_cannot_be_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host name can have several addresses."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            addresses = ("127.0.0.2", port), ("127.0.0.1", port)
            infos = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in addresses]
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "getaddrinfo", lambda *_, **__: asyncio.sleep(0, infos))
            listener = Listener(answered, LIMITS)
            with pytest.raises(InvalidInput, match="cannot be listened on: Address already in use"):
                await listener.start("--listen", Address("host", 1))
            # The listener is still there, so nothing else has closed its sockets.
            socket.create_server(("127.0.0.2", port), reuse_port=False).close()
            assert listener.connections == 0

    asyncio.run(run())


def test_a_listener_that_is_closed_accepts_and_holds_no_connection() -> None:
    async def run() -> None:
        listener = Listener(answered, LIMITS)
        address = await listener.start("--listen", LOOPBACK)
        silent = await asyncio.open_connection(address.host, address.port)
        await listener.close(0)
        assert await silent[0].read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(address.host, address.port)
        assert listener.connections == 0
        drop(silent)

    asyncio.run(run())


def test_a_connection_that_is_not_accepted_yet_gets_its_answer_when_the_listener_is_closed() -> None:
    async def run() -> None:
        listener = Listener(answered, LIMITS)
        address = await listener.start("--listen", LOOPBACK)
        async with asyncio.timeout(10):
            client = socket.create_connection((address.host, address.port))  # the event loop has no turn meanwhile
            closing = asyncio.create_task(listener.close(60))
            reader, writer = await asyncio.open_connection(sock=client)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
            await closing
        writer.transport.abort()

    asyncio.run(run())


@pytest.mark.slow
def test_a_handshake_ends_soon_when_the_listener_is_closed() -> None:
    """What is in flight has the grace period; a connection that has asked for nothing has a second."""

    async def run() -> None:
        asked, gate = asyncio.Event(), asyncio.Event()

        async def handle(_: web.BaseRequest) -> web.StreamResponse:
            asked.set()
            await gate.wait()
            return web.Response()

        listener = Listener(handle, LIMITS, tls=lambda: server_context(server_of(FRESH)))
        address = await listener.start("--listen", LOOPBACK)
        trust = ssl.create_default_context(cadata=(FRESH.ca_certificate or b"").decode())
        busy = await asyncio.open_connection(address.host, address.port, ssl=trust, server_hostname="localhost")
        busy[1].write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asked.wait()
        handshaking = await asyncio.open_connection(address.host, address.port)
        while listener.connections < 2:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)

        closing = asyncio.create_task(listener.close(60))
        async with asyncio.timeout(10):
            await until_closed(handshaking)
        assert not closing.done()

        gate.set()
        await closing
        drop(busy)

    asyncio.run(run())


def test_at_the_limit_an_address_with_the_most_connections_gives_one_up() -> None:
    """The new one is of an address with fewer, or of one that has the most itself."""

    async def run() -> None:
        closed: list[str] = []
        listener = Listener(answered, replace(LIMITS, most=6), count_closed=closed.append)
        address = await listener.start("--listen", LOOPBACK)

        async def connected(source: str) -> Stream:
            return await asyncio.open_connection(address.host, address.port, local_addr=(f"127.0.0.{source}", 0))

        def held() -> dict[str, int]:
            return {address.rpartition(".")[2]: len(found) for address, found in listener._by_address.items()}

        streams = []
        for evicted, (sources, counts) in enumerate(
            (
                ("322211", {"1": 2, "2": 3, "3": 1}),
                ("4", {"1": 2, "2": 2, "3": 1, "4": 1}),
                ("1", {"1": 2, "2": 2, "3": 1, "4": 1}),
                ("3", {"1": 2, "2": 1, "3": 2, "4": 1}),
            )
        ):
            streams += [await connected(source) for source in sources]
            async with asyncio.timeout(10):
                while len(closed) < evicted or listener.connections < 6:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(0)
            assert (held(), closed) == (counts, ["evicted"] * evicted)
        drop(*streams)
        await listener.close(0)
        assert (listener.connections, held()) == (0, {})

    asyncio.run(run())


def test_connections_that_arrive_together_evict_one_each() -> None:
    """The event loop has no turn between them, in which those evicted could end."""

    async def run() -> None:
        closed: list[str] = []
        listener = Listener(answered, replace(LIMITS, most=3), count_closed=closed.append)
        address = await listener.start("--listen", LOOPBACK)
        async with asyncio.timeout(10):
            held = [await asyncio.open_connection(address.host, address.port) for _ in range(3)]
            new = [socket.create_connection((address.host, address.port)) for _ in range(3)]
            for stream in held:
                await until_closed(stream)
        assert (listener.connections, closed) == (3, ["evicted"] * 3)
        for each in new:
            each.close()
        await listener.close(0)

    asyncio.run(run())


def test_more_connections_of_one_address_than_wait_for_their_turn_are_accepted_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrivals, "_MOST_OF_ONE_ADDRESS", 2)

    async def run() -> None:
        listener = Listener(answered, LIMITS)
        address = await listener.start("--listen", LOOPBACK)
        async with asyncio.timeout(10):
            clients = [socket.create_connection((address.host, address.port)) for _ in range(7)]
            streams = [await asyncio.open_connection(sock=client) for client in clients]
            for reader, writer in streams:
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        drop(*streams)
        await listener.close(0)

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"no handshake\r\n", b""], ids=["no TLS", "closed"])
def test_a_connection_whose_handshake_fails_counts_no_longer(sent: bytes) -> None:
    async def run() -> None:
        listener = Listener(answered, LIMITS, tls=lambda: server_context(server_of(FRESH)))
        address = await listener.start("--listen", LOOPBACK)
        async with asyncio.timeout(10):
            stream = await asyncio.open_connection(address.host, address.port)
            while not listener.connections:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0)
            (protocol,) = listener._open
            protocol.connection.since_seconds -= 10.0
            assert protocol.is_arriving, "its handshake is not done"
            stream[1].write(sent)
            stream[1].write_eof()
            await until_closed(stream)
            while listener.connections:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0)
        assert not listener._by_address
        await listener.close(0)

    asyncio.run(run())


def test_a_connection_whose_request_is_processed_is_kept_and_the_new_one_refused() -> None:
    async def run() -> None:
        closed: list[str] = []
        is_processed, ends = asyncio.Event(), asyncio.Event()

        async def process(request: web.BaseRequest) -> web.Response:
            protocol_of(request).begin(Stage.PROCESSING)
            is_processed.set()
            await ends.wait()
            return web.Response(text="done")

        listener = Listener(process, replace(LIMITS, most=1), count_closed=closed.append)
        address = await listener.start("--listen", LOOPBACK)
        busy = await asyncio.open_connection(address.host, address.port)
        busy[1].write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await is_processed.wait()

        await until_closed(await asyncio.open_connection(address.host, address.port))

        assert closed == ["refused"]
        ends.set()
        await busy[0].readuntil(b"done")
        drop(busy)
        await listener.close(0)

    asyncio.run(run())


def test_of_requests_that_arrive_slowly_the_one_that_began_first_is_given_up() -> None:
    """The connections were opened in the other order."""

    async def run() -> None:
        began: asyncio.Queue[None] = asyncio.Queue()

        async def read(request: web.BaseRequest) -> web.Response:
            began.put_nowait(None)
            return web.Response(text=await request.text())

        listener = Listener(read, replace(LIMITS, most=2))
        address = await listener.start("--listen", LOOPBACK)
        later, first = [await asyncio.open_connection(address.host, address.port) for _ in range(2)]
        for _, writer in (first, later):
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha")
            await began.get()

        new = await asyncio.open_connection(address.host, address.port)
        await until_closed(first)

        later[1].write(b"lf")
        await later[0].readuntil(b"half")
        drop(later, new)
        await listener.close(0)

    asyncio.run(run())


def test_an_address_without_connections_is_forgotten() -> None:
    """A port that many addresses reach must not keep a count for each."""

    async def run() -> None:
        listener = Listener(answered, LIMITS)
        address = await listener.start("--listen", LOOPBACK)
        for source in ("127.0.0.1", "127.0.0.2"):
            stream = await asyncio.open_connection(address.host, address.port, local_addr=(source, 0))
            stream[1].write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            await until_closed(stream)
        await listener.close(0)
        assert not listener._by_address

    asyncio.run(run())


def test_a_listener_out_of_descriptors_accepts_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    class FullOnce(socket.socket):
        """A listening socket of a process that has no descriptor left when it is first asked."""

        is_full = True

        def accept(self) -> tuple[socket.socket, Any]:
            if self.is_full:
                self.is_full = False
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().accept()

    async def run() -> None:
        loop, pauses = asyncio.get_running_loop(), list[float]()
        call_later = loop.call_later

        def called_later(seconds: float, callback: Callable[..., None], *given: Any) -> asyncio.TimerHandle:
            if callback == listener._accept_again:
                pauses.append(seconds)
                seconds = 0.0
            return call_later(seconds, callback, *given)

        listener = Listener(answered, LIMITS)
        monkeypatch.setattr(socket, "socket", FullOnce)
        address = await listener.start("--listen", LOOPBACK)
        monkeypatch.undo()
        monkeypatch.setattr(loop, "call_later", called_later)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert pauses == [0.2]
        (listening,) = listener._sockets
        drop((reader, writer))
        await listener.close(0)
        listener._accept_again(listening)

    with structlog.testing.capture_logs() as logs:
        asyncio.run(run())
    assert [(log["event"], log["error"]) for log in logs] == [("connections cannot be accepted", "Too many open files")]


def test_more_lines_are_logged_after_ten_seconds_with_the_number_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        loop, now = asyncio.get_running_loop(), 1000.0
        listener = Listener(answered, LIMITS)
        for seconds in [0.0] * 23 + [9.9, 10.0, 10.1]:
            monkeypatch.setattr(loop, "time", lambda seconds=seconds: now + seconds)
            listener._limited_log.warning("event", seconds=seconds)
        monkeypatch.undo()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(run())
    assert [log.get("seconds") for log in logs] == [0.0] * 20 + [None, 10.0, 10.1]
    assert logs[20]["event"] == "more of the same was not logged"
    assert logs[20]["lines"] == 4
