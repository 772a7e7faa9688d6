"""A request that needs no waiting is answered when it arrives; any other one is left to the handler, whole."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import LOOPBACK, World, review_bytes, running
from webhook.runtime.settings import Address
from webhook.serving.connection import Stage
from webhook.serving.decisions.admissions import Answer
from webhook.serving.http import protocol as protocol_module
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.listener import Listener
from webhook.serving.http.protocol import HttpProtocol

LIMITS = Limits(most=8, most_per_address=8, head_seconds=60.0, keepalive_seconds=60.0)
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST /mutate HTTP/1.1", "Host: a", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@dataclass
class Quick:
    """Answers the bodies that begin with `quick`, once `write` is called if `holds`."""

    holds: bool = False
    asked: list[bytes] = field(default_factory=list)
    done: list[Callable[[Exception | None], None]] = field(default_factory=list)

    def answer_at_once(self, _: HttpProtocol, message: RawRequestMessage, body: bytes) -> Answer | None:
        assert message.method == "POST"
        self.asked.append(body)
        return Answer(200, b"at once") if body.startswith(b"quick") else None

    def when_written(self, done: Callable[[Exception | None], None]) -> None:
        self.done.append(done)
        if not self.holds:
            asyncio.get_running_loop().call_soon(self.write)

    def write(self, failure: Exception | None = None) -> None:
        waiting, self.done = self.done, []
        for each in waiting:
            each(failure)


@dataclass
class Site:
    listener: Listener
    address: Address
    quick: Quick
    handled: list[bytes]

    async def connect(self) -> Stream:
        """Return a connection with a first answer, which is the handler's."""
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
        writer.write(post(b"first"))
        assert await content(reader) == b"by the handler"
        return reader, writer

    async def until(self, is_true: Callable[[], object]) -> None:
        while not is_true():  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0)


async def content(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
    return await reader.readexactly(int(length.removeprefix(b"Content-Length: ")))


def with_listener(story: Callable[[Site], Awaitable[None]], quick: Quick | None = None) -> None:
    async def run() -> None:
        handled: list[bytes] = []

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            handled.append(await request.read())
            return web.Response(body=b"by the handler")

        asked = quick or Quick()
        listener = Listener(handle, LIMITS, at_once=asked.answer_at_once, when_written=asked.when_written)
        address = await listener.start("--listen", LOOPBACK)
        async with asyncio.timeout(20):
            await story(Site(listener, address, asked, handled))
            if listener._sockets[0].fileno() >= 0:
                await listener.close(0)

    asyncio.run(run())


def test_requests_that_need_no_waiting_are_answered_at_once_from_the_first_one_on() -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(site.address.host, site.address.port)
        for number in range(3):
            writer.write(post(b"quick %d" % number))
            assert await content(reader) == b"at once"
        assert site.handled == []
        assert site.quick.asked == [b"quick 0", b"quick 1", b"quick 2"]
        (protocol,) = site.listener._open
        assert protocol.timer is None, "the time for the first request"
        writer.close()

    with_listener(story)


def test_a_connection_that_the_client_wants_closed_is_closed_after_the_answer_at_once() -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(site.address.host, site.address.port)
        writer.write(post(b"quick", "Connection: close"))
        assert b"\r\nConnection: close\r\n" in (head := await reader.readuntil(b"\r\n\r\n"))
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert await reader.read() == b"at once"
        assert site.handled == []
        writer.close()

    with_listener(story)


def test_a_client_that_goes_before_its_request_is_looked_at_is_not_asked_for() -> None:
    async def story(site: Site) -> None:
        _, writer = await site.connect()
        (protocol,) = site.listener._open
        protocol._waiter, waiter = None, protocol._waiter
        protocol.data_received(post(b"quick"))
        protocol._waiter = waiter
        protocol.connection_lost(None)
        await site.until(lambda: not site.listener.connections)
        await asyncio.sleep(0)
        assert site.quick.asked == [b"first"]
        writer.transport.abort()

    with_listener(story)


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_request_that_needs_waiting_is_handled_with_its_whole_body(size: int) -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        body = b"slow" * size
        writer.write(post(body))
        assert await content(reader) == b"by the handler"
        assert site.handled == [b"first", body]
        writer.write(post(b"quick"))
        assert await content(reader) == b"at once"
        writer.close()

    with_listener(story)


def test_a_request_of_http_1_0_is_handled() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick").replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert await content(reader) == b"by the handler"
        assert await reader.read() == b""
        assert site.quick.asked == [b"first"]
        writer.close()

    with_listener(story)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a body is always in time, however busy the machine is."""
    monkeypatch.setattr(protocol_module, "_REST_SECONDS", 60.0)


@pytest.mark.usefixtures("patient")
def test_a_body_whose_rest_follows_soon_is_answered_at_once() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        whole = post(b"quick, in two parts")
        writer.write(whole[:-5])
        (protocol,) = site.listener._open
        await site.until(lambda: protocol._messages)
        writer.write(whole[-5:])
        assert await content(reader) == b"at once"
        assert site.handled == [b"first"]
        writer.close()

    with_listener(story)


def test_a_body_whose_rest_does_not_follow_soon_is_handled() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        whole = post(b"quick, later")
        writer.write(whole[:-5])
        (protocol,) = site.listener._open
        await site.until(lambda: protocol.connection.stage == Stage.READING)
        writer.write(whole[-5:])
        assert await content(reader) == b"by the handler"
        assert site.handled == [b"first", b"quick, later"]
        writer.close()

    with_listener(story)


@pytest.mark.usefixtures("patient")
def test_a_body_that_arrives_in_parts_while_the_request_before_it_ends_is_answered() -> None:
    async def story(site: Site) -> None:
        loop, whole, handler = asyncio.get_running_loop(), post(b"quick, later"), site.listener._handler

        def arrive() -> None:
            (protocol,) = site.listener._open
            protocol.data_received(whole[:-5])
            loop.call_soon(protocol.data_received, whole[-5:])

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if not site.handled:
                loop.call_soon(arrive)
            return await handler(request)

        site.listener._handler = handle
        reader, writer = await site.connect()
        assert await content(reader) == b"at once"
        assert site.handled == [b"first"]
        writer.write(post(b"quick"))
        assert await content(reader) == b"at once"
        writer.close()

    with_listener(story)


def test_a_request_to_upgrade_does_not_keep_the_next_one_from_being_answered() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick", "Connection: Upgrade", "Upgrade: websocket"))
        assert await content(reader) == b"by the handler"
        writer.write(post(b"quick"))
        assert await content(reader) == b"at once"
        writer.close()

    with_listener(story)


def test_a_connection_that_has_been_idle_for_long_is_not_closed_before_its_answer_is_sent() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        (protocol,) = site.listener._open
        protocol._next_keepalive_close_time = asyncio.get_running_loop().time()
        writer.write(post(b"quick"))
        await site.until(lambda: site.quick.done)
        protocol._process_keepalive()
        site.quick.write()
        assert await content(reader) == b"at once"
        writer.close()

    with_listener(story, Quick(holds=True))


def test_the_time_of_an_idle_connection_begins_with_its_answer() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        (protocol,) = site.listener._open
        protocol.connection.since_seconds -= 50.0
        writer.write(post(b"quick"))
        assert await content(reader) == b"at once"
        ends_seconds = protocol.connection.since_seconds + LIMITS.keepalive_seconds
        assert protocol._next_keepalive_close_time == ends_seconds
        assert ends_seconds > asyncio.get_running_loop().time() + 40.0
        writer.close()

    with_listener(story)


def test_the_limit_of_a_head_is_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_module, "_MAX_HEAD_BYTES", 100)

    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        (protocol,) = site.listener._open
        for _request in range(4):
            whole = post(b"quick")
            protocol.data_received(whole[:60])
            writer.write(whole[60:])
            assert await content(reader) == b"at once"
        writer.close()

    with_listener(story)


def test_an_answer_is_sent_once_its_record_is_written_and_its_connection_is_not_idle_until_then() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick"))
        await site.until(lambda: site.quick.done)
        (protocol,) = site.listener._open
        stages = [protocol.connection.stage]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.01)

        site.quick.write()
        assert await content(reader) == b"at once"
        assert [*stages, protocol.connection.stage] == [Stage.PROCESSING, Stage.IDLE]
        writer.close()

    with_listener(story, Quick(holds=True))


def test_a_stopping_listener_sends_the_answer_that_is_decided() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick"))
        await site.until(lambda: site.quick.done)

        closing = asyncio.create_task(site.listener.close(60))
        await site.until(
            lambda: site.listener._server is not None and all(each._closes for each in site.listener._open)
        )
        site.quick.write()
        assert await content(reader) == b"at once"
        assert await reader.read() == b""
        await closing
        writer.close()

    with_listener(story, Quick(holds=True))


@pytest.mark.parametrize("kind", [b"quick", b"slow"])
@pytest.mark.parametrize("stage", [Stage.IDLE, Stage.READING])
def test_a_stopping_listener_answers_the_request_that_has_arrived_in_part(
    stage: Stage, kind: bytes, request: pytest.FixtureRequest
) -> None:
    if stage == Stage.IDLE:
        request.getfixturevalue("patient")

    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        whole = post(kind + b", later")
        writer.write(whole[:-5])
        (protocol,) = site.listener._open
        await site.until(lambda: protocol._messages if stage == Stage.IDLE else protocol.connection.stage == stage)

        closing = asyncio.create_task(site.listener.close(60))
        for _turn in range(20):
            await asyncio.sleep(0)
        writer.write(whole[-5:])
        assert await content(reader) == (b"at once" if (stage, kind) == (Stage.IDLE, b"quick") else b"by the handler")
        assert await reader.read() == b""
        await closing
        writer.close()

    with_listener(story)


@pytest.mark.parametrize(("open_for_seconds", "is_awaited"), [(0.1, True), (10.0, False)])
def test_a_stopping_listener_waits_for_the_first_request_of_a_connection_just_opened(
    open_for_seconds: float, is_awaited: bool
) -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(site.address.host, site.address.port)
        await site.until(lambda: [each for each in site.listener._open if each.transport is not None])
        (protocol,) = site.listener._open
        protocol.connection.since_seconds -= open_for_seconds
        assert protocol.is_arriving == is_awaited

        closing = asyncio.create_task(site.listener.close(60))
        if is_awaited:
            writer.write(post(b"slow"))
            assert await content(reader) == b"by the handler"
        assert await reader.read() == b""
        await closing
        writer.close()

    with_listener(story)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("arrived", [20, -5])
def test_a_stopping_listener_answers_the_first_request_that_has_arrived_in_part(arrived: int) -> None:
    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(site.address.host, site.address.port)
        await site.until(lambda: [each for each in site.listener._open if each.transport is not None])
        (protocol,) = site.listener._open
        protocol.connection.since_seconds -= 10.0
        whole = post(b"quick, later")
        writer.write(whole[:arrived])
        await site.until(lambda: protocol._request_count or protocol._head_bytes)

        closing = asyncio.create_task(site.listener.close(60))
        for _turn in range(20):
            await asyncio.sleep(0)
        writer.write(whole[arrived:])
        assert await content(reader) == b"at once"
        assert await reader.read() == b""
        await closing
        writer.close()

    with_listener(story)


def test_a_record_that_cannot_be_written_is_an_internal_error_and_closes_the_connection() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick"))
        await site.until(lambda: site.quick.done)
        site.quick.write(RuntimeError("no log"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 500 ")
        assert b"internal fault" in await reader.read()
        writer.close()

    with_listener(story, Quick(holds=True))


def test_a_request_that_follows_at_once_waits_for_the_answer_before_it() -> None:
    async def story(site: Site) -> None:
        reader, writer = await site.connect()
        writer.write(post(b"quick 1"))
        await site.until(lambda: site.quick.done)
        writer.write(post(b"quick 2"))
        (protocol,) = site.listener._open
        await site.until(lambda: protocol._messages)
        assert site.quick.asked == [b"first", b"quick 1"]

        site.quick.write()
        assert await content(reader) == b"at once"
        assert await content(reader) == b"by the handler"
        writer.close()

    with_listener(story, Quick(holds=True))


def test_a_client_that_has_gone_gets_no_answer_and_holds_no_connection() -> None:
    async def story(site: Site) -> None:
        _, writer = await site.connect()
        writer.write(post(b"quick"))
        await site.until(lambda: site.quick.done)
        writer.transport.abort()
        await site.until(lambda: not site.listener.connections)
        site.quick.write()
        assert site.handled == [b"first"]

    with_listener(story, Quick(holds=True))


@given(
    st.lists(
        st.tuples(st.sampled_from([b"quick", b"slow"]), st.lists(st.integers(0, 400), max_size=3), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_each_request_is_answered_in_whatever_parts_it_arrives(requests: list[tuple[bytes, list[int], bool]]) -> None:
    """Each part is written by itself; in half of the cases the server has a turn before the next one."""

    async def story(site: Site) -> None:
        reader, writer = await asyncio.open_connection(site.address.host, site.address.port)
        for number, (kind, places, waits) in enumerate(requests):
            whole = post(kind + b" %d " % number + b"x" * 200)
            for start, end in pairwise([0, *sorted(places), len(whole)]):
                writer.write(whole[start:end])
                await asyncio.sleep(0)
                if waits:
                    await site.until(lambda: not writer.transport.get_write_buffer_size())
            answer = await content(reader)
            assert (kind, answer) in ((b"quick", b"at once"), (kind, b"by the handler"))
        writer.close()

    with_listener(story)


def answers_of(world: World, folder: Path, bodies: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return status and media type, and the body, of each answer to `bodies` on one connection to the server."""
    found: list[tuple[bytes, bytes]] = []

    async def run() -> None:
        async with running(world, folder) as server, asyncio.timeout(20):
            connect = partial(asyncio.open_connection, server.address.host, server.address.port)
            reader, writer = await connect(ssl=server.tls, server_hostname="localhost")
            assert isinstance(writer.get_extra_info("ssl_object"), ssl.SSLObject)
            for body in bodies:
                writer.write(post(body))
                head = await reader.readuntil(b"\r\n\r\n")
                (length,) = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
                answer = await reader.readexactly(int(length.removeprefix(b"Content-Length: ")))
                (content_type,) = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Type: ")]
                found.append((head.partition(b"\r\n")[0] + content_type, answer))
            writer.close()

    asyncio.run(run())
    return found


def test_answers_at_once_equal_those_of_the_handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a review, one that is not JSON, one without a pod, and one of a pod that is denied."""
    denied = review_bytes(make_pod("trainer").annotate(TYPE, "nonsense").obj())
    bodies = [REVIEW, b"{", b"{}", denied, REVIEW]
    at_once, handled = World(), World()
    found = answers_of(at_once, tmp_path, bodies)
    monkeypatch.setattr(HttpProtocol, "_answer_at_once", lambda _: False)
    assert found == answers_of(handled, tmp_path, bodies)
    assert [status[9:12] for status, _ in found] == [b"200", b"400", b"400", b"200", b"200"]
    assert [each.outcome for each in at_once.records] == [each.outcome for each in handled.records]
    refused = "http_refused_requests_total"
    assert at_once.count(refused, code="400") == handled.count(refused, code="400") == 2
