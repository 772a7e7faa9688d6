"""A stop ends the controller at any moment, also when an event arrives with it."""

import asyncio
from collections.abc import Iterator

import pytest
from aiohttp import ClientSession
from prometheus_client import disable_created_metrics, enable_created_metrics

from certs.controller.admin import ControllerMetrics, admin_port
from certs.controller.loop import Controller
from tests.certs.controller.quiet import OPTIONS, Quiet
from tests.support.servers.live import until
from webhook.runtime.metrics import CONTENT_TYPE
from webhook.runtime.settings import Address


@pytest.mark.parametrize("with_event", [True, False])
def test_a_stop_ends_the_controller_also_with_an_event(with_event: bool) -> None:
    async def run() -> None:
        event, stop, started = asyncio.Event(), asyncio.Event(), asyncio.Event()
        server = Quiet(event)
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=3600)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0), lambda _: started.set()))
        await started.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert controller.unready_reason() == ""
        if with_event:
            event.set()
        stop.set()
        async with asyncio.timeout(20):
            await running

    asyncio.run(run())


@pytest.mark.parametrize("code", [410, 500])
def test_an_error_that_ends_a_watch_is_reported_and_the_objects_are_read_again(code: int) -> None:
    async def run() -> None:
        event, stop = asyncio.Event(), asyncio.Event()
        server = Quiet(event, b'{"type": "ERROR", "object": {"code": %d, "message": "it is over"}}' % code)
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=3600)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        await until(lambda: controller.unready_reason() == "")
        reads = server.reads
        event.set()
        await until(lambda: controller.unready_reason().endswith(": it is over"))
        await until(lambda: server.reads > reads)
        stop.set()
        await running

    asyncio.run(run())


@pytest.mark.slow
def test_a_stop_does_not_wait_for_the_body_of_a_request_that_is_answered() -> None:
    """aiohttp reads such a body for ten seconds."""

    async def run() -> None:
        stop = asyncio.Event()
        address: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        server = Quiet(asyncio.Event())
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=3600)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0), address.set_result))
        reader, writer = await asyncio.open_connection((await address).host, (await address).port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        await reader.readuntil(b"ok\n")
        stop.set()
        async with asyncio.timeout(9):
            await running
        writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("reason", "note", "status", "text"),
    [
        ("", "", 200, "ok\n"),
        ("", "waits", 200, "ok\nwaits\n"),
        ("it fails", "", 503, "not ready: it fails\n"),
        ("it fails", "waits", 503, "not ready: it fails\nwaits\n"),
    ],
)
def test_a_controller_that_waits_is_ready_and_one_that_fails_is_only_alive(
    reason: str, note: str, status: int, text: str
) -> None:
    async def run() -> list[tuple[int, str]]:
        served = admin_port(Address("127.0.0.1", 0), ControllerMetrics(), lambda: reason, lambda: note)
        async with served as address, ClientSession(f"http://{address}") as session:
            answers = [await session.get(path) for path in ("/healthz", "/readyz", "/other")]
            return [(each.status, await each.text()) for each in answers]

    alive, ready, other = asyncio.run(run())
    assert (alive, ready, other[0]) == ((200, "ok\n"), (status, text), 404)


@pytest.fixture
def with_created_metrics() -> Iterator[None]:
    enable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
    yield
    disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types


@pytest.mark.usefixtures("with_created_metrics")
def test_the_metrics_are_there_from_the_start_without_times_of_creation() -> None:
    async def run() -> tuple[str, str]:
        metrics = ControllerMetrics()
        metrics.actions.labels("mend_ca_bundle", "failed").inc()
        served = admin_port(Address("127.0.0.1", 0), metrics, lambda: "", lambda: "")
        async with served as address, ClientSession(f"http://{address}") as session:
            answer = await session.get("/metrics")
            return answer.headers["Content-Type"], await answer.text()

    content_type, text = asyncio.run(run())
    counted = [
        line for line in text.splitlines() if line.startswith("placement_webhook_certs_controller_actions_total{")
    ]
    assert content_type == CONTENT_TYPE
    assert 'placement_webhook_certs_controller_actions_total{action="mend_ca_bundle",result="failed"} 1.0' in counted
    assert len(counted) == 7 * 3
    assert "placement_webhook_certs_controller_failures_total 0.0" in text
    assert "_created" not in text
