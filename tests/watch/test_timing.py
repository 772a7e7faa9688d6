"""A reflector's pauses after failures, its turns on the event loop, and watches that end a little early."""

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.servers.live import versioned_node
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.resources import REQUIRED_RESOURCES
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.live import LiveCluster
from webhook.watch.reflector import Reflector
from webhook.watch.timing import CatchUpTarget, Timing

(NODE,) = [resource for resource in REQUIRED_RESOURCES if resource.kind == "Node"]


def reflector_of_nodes(timing: Timing | None = None, **callbacks: Any) -> Reflector:
    def connect() -> Any:
        raise AssertionError("no connection is made here")

    return Reflector(NODE, ClusterCache(), connect, timing or Timing(), **callbacks)


@pytest.fixture
def longest_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.watch.reflector.random.uniform", lambda _, longest: longest)


@pytest.mark.usefixtures("longest_pauses")
@pytest.mark.parametrize(
    ("is_refused", "seconds"),
    [
        (False, [0.25, 0.5, 1, 2, 4, 8, 10, 10, 10, 10]),
        (True, [2, 4, 8, 16, 32, 60, 60]),
    ],
)
def test_pause_doubles_with_each_failure_in_a_row_up_to_the_longest(is_refused: bool, seconds: list[float]) -> None:
    reflector = reflector_of_nodes()
    reflector.is_refused = is_refused
    assert [reflector._pause_seconds() for _ in seconds] == seconds


@pytest.mark.usefixtures("longest_pauses")
def test_pause_grows_for_sixteen_failures() -> None:
    reflector = reflector_of_nodes(Timing(first_pause_seconds=1, longest_pause_seconds=1e9))
    pauses = [reflector._pause_seconds() for _ in range(2000)]
    assert (pauses[15], pauses[16], pauses[-1]) == (2**15, 2**16, 2**16)


@pytest.mark.usefixtures("longest_pauses")
def test_pause_is_short_again_once_the_api_server_is_reachable() -> None:
    """An API server that has just started rejects requests for a moment, which is no further failure of hours."""
    reflector = reflector_of_nodes()
    for _ in range(20):
        reflector._handle_error(UnreachableError("no answer"))
        reflector._pause_seconds()
    reflector._handle_error(ApiServerError("starting", 503))
    assert reflector._pause_seconds() == 1


def test_pause_is_between_half_of_it_and_all_of_it() -> None:
    """Replicas that lose the API server at one moment do not come back at one moment."""
    timing = Timing(first_pause_seconds=8, longest_pause_seconds=8)
    pauses = [reflector_of_nodes(timing)._pause_seconds() for _ in range(200)]
    assert 4 <= min(pauses) < 5
    assert 7 < max(pauses) <= 8


@pytest.mark.parametrize(("worked_seconds", "yields"), [(0.001, False), (0.003, True)])
def test_others_get_their_turn_on_the_loop_after_a_slice(
    monkeypatch: pytest.MonkeyPatch, worked_seconds: float, yields: bool
) -> None:
    async def run() -> list[str]:
        turns: list[str] = []
        reflector = reflector_of_nodes(Timing(slice_seconds=0.002))
        reflector._slice_started = 100.0
        asyncio.get_running_loop().call_soon(turns.append, "admission")
        clock = SimpleNamespace(monotonic=lambda: 100.0 + worked_seconds)
        monkeypatch.setattr("webhook.watch.reflector.time", clock)
        await reflector._yield_to_loop()
        return list(turns)

    assert asyncio.run(run()) == (["admission"] if yields else [])


class QuietServer:
    """An API server whose watches end without an event."""

    async def lines(self, *_: Any) -> AsyncIterator[list[bytes]]:
        nothing: list[list[bytes]] = []
        for lines in nothing:
            yield lines


class ServerWithNodes:
    """An API server with three nodes."""

    async def body(self, *_: Any) -> bytes:
        items = [versioned_node(name) for name in "abc"]
        return orjson.dumps({"metadata": {"resourceVersion": "7"}, "items": items})


def test_others_get_their_turn_within_a_page_of_a_list() -> None:
    async def run() -> int:
        loop = asyncio.get_running_loop()
        turns: list[int] = []

        def take_a_turn() -> None:
            turns.append(len(turns))
            loop.call_soon(take_a_turn)

        loop.call_soon(take_a_turn)
        server: Any = ServerWithNodes()
        await reflector_of_nodes(Timing(slice_seconds=-1))._list(server)
        return len(turns)

    assert asyncio.run(run()) == 3


def test_list_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([100.0, *[100.25] * 9])
    monkeypatch.setattr("webhook.watch.reflector.time", SimpleNamespace(monotonic=lambda: next(readings)))
    server: Any = ServerWithNodes()
    with capture_logs() as logs:
        asyncio.run(reflector_of_nodes()._list(server))
    assert [(each["event"], each["version"], each["seconds"]) for each in logs] == [("listed", "7", 0.25)]


def watched_for(seconds: float, monkeypatch: pytest.MonkeyPatch) -> Reflector:
    """A reflector that catches up, after a watch without events that was to last 1 s and lasted `seconds`."""

    async def run() -> Reflector:
        reflector = reflector_of_nodes(Timing(catching_up_seconds=1, shortest_watch_seconds=1.0))
        reflector._target = CatchUpTarget()
        readings = iter([100.0, *[100.0 + seconds] * 5])
        monkeypatch.setattr("webhook.watch.reflector.time", SimpleNamespace(monotonic=lambda: next(readings)))
        server: Any = QuietServer()
        await reflector._watch(server, "5")
        return reflector

    return asyncio.run(run())


def test_listed_objects_are_current_as_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def list_pages(*_: object) -> str:
        return "5"

    readings, server = iter([100.0, *[130.0] * 5]), None
    monkeypatch.setattr("webhook.watch.reflector.time", SimpleNamespace(monotonic=lambda: next(readings)))
    monkeypatch.setattr("webhook.watch.reflector.list_pages", list_pages)
    reflector = reflector_of_nodes()
    asyncio.run(reflector._list(server))  # type: ignore[arg-type]
    assert reflector.current_as_of_seconds == 100.0


def test_watch_that_ends_a_twentieth_of_a_second_early_has_lasted_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of two machines do not run quite alike."""
    assert watched_for(0.95, monkeypatch).current_as_of_seconds == 100.95


def test_watch_that_ends_earlier_without_an_event_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiServerError, match="ended a watch at once"):
        watched_for(0.85, monkeypatch)


def test_refusal_shows_that_the_api_server_is_there_again() -> None:
    reached: list[float] = []
    reflector = reflector_of_nodes(on_reachable=lambda: reached.append(time.monotonic()))

    reflector._handle_error(UnreachableError("the API server does not answer"))
    before = (reflector.is_unreachable, len(reached))
    reflector._handle_error(ApiServerError("429 Too Many Requests", 429))

    assert before == (True, 0)
    assert (reflector.is_unreachable, len(reached)) == (False, 1)


def test_api_server_that_does_not_answer_is_not_asked_again_before_the_pause_is_over() -> None:
    async def run() -> int:
        attempts: list[None] = []

        def connect() -> Any:
            attempts.append(None)
            if len(attempts) > 3:
                raise asyncio.CancelledError
            raise UnreachableError("the API server does not answer")

        timing = Timing(first_pause_seconds=1000, longest_pause_seconds=1000)
        task = asyncio.create_task(Reflector(NODE, ClusterCache(), connect, timing).run())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return len(attempts)

    assert asyncio.run(run()) == 1


def test_kind_that_is_listed_is_refused_no_more() -> None:
    reflector = reflector_of_nodes()
    reflector.is_refused = True
    server: Any = ServerWithNodes()
    asyncio.run(reflector._list(server))
    assert not reflector.is_refused


def test_background_uses_the_snapshot_that_an_admission_has_just_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("webhook.watch.live.time.monotonic", lambda: clock.seconds)
    cache, settled = ClusterCache(), list[int]()

    class Follower(ClusterFollower):
        def settled(self, snapshot: Snapshot) -> bool:
            settled.append(len(snapshot.nodes))
            return len(settled) == 2

    def connect() -> Any:
        raise AssertionError("no connection is made here")

    live = LiveCluster(connect, Follower(), cache=cache)
    for reflector in live._reflectors:
        reflector.current_as_of_seconds = 0.0
    live.snapshot()
    cache.apply("Node", "ADDED", versioned_node("a"))
    for seconds in (0.02, 0.03):
        clock.seconds = seconds
        live._settle()

    assert settled == [0, 1]
    assert [each.resource.kind for each in live._reflectors if each._lists_again] == ["Pod"]


def test_changes_are_worked_in_every_50_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    def connect() -> Any:
        raise UnreachableError("the API server does not answer")

    monkeypatch.setattr("webhook.watch.live.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(LiveCluster(connect).run())

    assert pauses == [0.05]
