"""After an interruption the view soon becomes current, as of a time that the API server confirms."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.servers.fake_api import Answer, FakeApi, events, fake_api, page, refusal
from tests.support.servers.live import NODES, TIMING, bookmark, following_in_thread, until, versioned_node
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.resources import REQUIRED_RESOURCES
from webhook.watch.api_server import ClientConfig
from webhook.watch.reflector import Reflector
from webhook.watch.timing import Timing, timing_for

(NODE,) = [resource for resource in REQUIRED_RESOURCES if resource.kind == "Node"]
BREAK = events(cut=b"{")
ADDED = ("ADDED", versioned_node("b", 5))


@asynccontextmanager
async def reflecting(
    api: FakeApi, folder: Path, timing: Timing = TIMING, on_reachable: Callable[[], None] = lambda: None
) -> AsyncIterator[Reflector]:
    """Run a reflector of nodes."""
    connect = ClientConfig(api.kubeconfig(folder)).connect
    reflector = Reflector(NODE, ClusterCache(), connect, timing, on_reachable=on_reachable)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def watches(api: FakeApi) -> list[int]:
    """Return the requested length of each watch in seconds."""
    return [int(each["timeoutSeconds"]) for each in api.asked if "watch" in each]


@pytest.mark.parametrize("last", [("ADDED", versioned_node("c", 100)), bookmark(100)], ids=["event", "bookmark"])
def test_old_events_do_not_make_the_view_current(tmp_path: Path, last: tuple[str, dict[str, Any]]) -> None:
    applied, ends = asyncio.Event(), asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(_line(*ADDED))
        applied.set()
        await ends.wait()
        await response.write(_line(*last))
        await asyncio.sleep(60)
        return response

    async def run() -> None:
        async with fake_api(NODES, page([versioned_node("a")], "4"), BREAK, watch) as api:
            api.newest = "100"
            async with reflecting(api, tmp_path) as reflector:
                await asyncio.wait_for(applied.wait(), 10)
                broken_seconds = reflector.current_as_of_seconds
                assert broken_seconds is not None
                asked_seconds = time.monotonic()
                await until(lambda: reflector.version == "5")
                assert reflector.current_as_of_seconds == broken_seconds
                ends.set()
                await until(lambda: reflector.version == "100")
                assert broken_seconds < reflector.current_as_of_seconds <= asked_seconds

    asyncio.run(run())


def _line(kind: str, content: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": content}) + b"\n"


CAUGHT_UP = range(24, 37)


class Clock:
    """The time that a reflector measures; only watches let it pass."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def monotonic(self) -> float:
        return self._seconds

    def second(self, *given: tuple[str, dict[str, Any]]) -> Answer:
        """Return a watch of a second with these events."""

        async def answer(request: web.Request) -> web.StreamResponse:
            self._seconds += 1
            return await events(*given)(request)

        return answer


CLOCK = Clock()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([BREAK, CLOCK.second()], [CAUGHT_UP, [1], CAUGHT_UP], id="nothing happens"),
        pytest.param(
            [BREAK, CLOCK.second(ADDED), CLOCK.second()],
            [CAUGHT_UP, [1], [1], CAUGHT_UP],
            id="something had happened",
        ),
        pytest.param([BREAK, BREAK, CLOCK.second()], [CAUGHT_UP, [1], [1], CAUGHT_UP], id="broken off again"),
        pytest.param([events(ADDED), CLOCK.second()], [CAUGHT_UP, [1], CAUGHT_UP], id="ended before its time"),
    ],
)
def test_watches_are_short_until_the_view_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: list[Answer], expected: list[Any]
) -> None:
    monkeypatch.setattr("webhook.watch.reflector.time", CLOCK)

    async def run() -> list[int]:
        async with fake_api(NODES, page([versioned_node("a")], "4"), *script) as api:
            # Other kinds have changed: no event of this kind reaches the version.
            api.newest = "1000"
            async with reflecting(api, tmp_path) as reflector:
                await until(lambda: len(watches(api)) == len(expected))
                assert reflector.current_as_of_seconds is not None
                return watches(api)

    for seconds, wanted in zip(asyncio.run(run()), expected, strict=True):
        assert seconds in wanted


def test_view_with_the_newest_version_is_current_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with fake_api(NODES, page([versioned_node("a")], "4"), BREAK) as api:
            api.newest = "4"
            async with reflecting(api, tmp_path):
                await until(lambda: len(watches(api)) == 2)
                assert watches(api)[1] in CAUGHT_UP
                assert api.times_asked_how_far == 1

    asyncio.run(run())


def test_reflector_that_reaches_the_server_wakes_the_others(tmp_path: Path) -> None:
    patient = Timing(first_pause_seconds=1000, longest_pause_seconds=1000)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (events(lasting_seconds=60) if "watch" in request.query else page([], "4"))(request)

    async def run() -> None:
        async with fake_api(NODES) as gone:
            pass
        async with (
            reflecting(gone, tmp_path, patient) as waiting,
            reflecting(gone, tmp_path, on_reachable=waiting.wake) as first,
        ):
            await until(lambda: waiting.is_unreachable and first.is_unreachable)
            async with fake_api(NODES, refusal(429, "TooManyRequests"), *[answer] * 4) as api:
                api.kubeconfig(tmp_path)
                await until(lambda: first.current_as_of_seconds is not None)
                await until(lambda: waiting.current_as_of_seconds is not None)

    asyncio.run(run())


def test_reflector_that_is_woken_during_an_attempt_that_fails_makes_another(tmp_path: Path) -> None:
    """An API server that starts cuts connections off, after it has answered others."""
    patient = Timing(first_pause_seconds=1000, longest_pause_seconds=1000)

    async def run() -> None:
        async with fake_api(NODES) as gone:
            pass
        async with reflecting(gone, tmp_path, patient) as reflector:
            await until(lambda: reflector.is_unreachable)

            async def cut_off(request: web.Request) -> web.StreamResponse:
                reflector.wake()
                return await BREAK(request)

            async with fake_api(NODES, cut_off, page([], "4"), events(lasting_seconds=60)) as api:
                api.newest = "4"
                api.kubeconfig(tmp_path)
                reflector.wake()
                await until(lambda: reflector.current_as_of_seconds is not None)

    asyncio.run(run())


@pytest.mark.parametrize(("longest_age", "watch"), [(3600, 24), (60, 24), (20, 8), (5, 2), (1, 1)])
def test_quiet_view_stays_within_the_age_that_the_policy_allows(longest_age: int, watch: int) -> None:
    assert timing_for(longest_age).watch_seconds == watch


def test_quiet_view_is_current_soon_after_the_api_server_is_back(cluster: Cluster) -> None:
    """The reflectors wait neither for the end of normal watches nor for their own backoff."""
    timing = Timing(watch_seconds=200, first_pause_seconds=0.1, longest_pause_seconds=200)
    # The scheduler would reconnect only after half a minute, and the next test would wait for it.
    cluster.control_plane.stop_scheduler()
    with following_in_thread(cluster.control_plane.kubeconfig, timing=timing) as live:
        cluster.control_plane.stop_api_server()
        stopped_seconds = time.monotonic()
        try:
            wait_for(lambda: live.age_seconds() > 1, "a view that grows old")
        finally:
            cluster.control_plane.restart_api_server()

        def is_current_since_the_stop() -> bool:
            now_seconds = time.monotonic()
            return live.age_seconds() < now_seconds - stopped_seconds

        # Once proven current, the view ages until the end of a watch, which a slow machine may take to restart.
        wait_for(is_current_since_the_stop, lambda: f"a view proven current: {live.age_seconds():.1f} s")
