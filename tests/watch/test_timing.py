"""A reflector's pauses after failures, its turns on the event loop, and watches that end a little early."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.servers.live import versioned_node
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.resources import REQUIRED_RESOURCES, RESOURCES
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput, required
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.live import LiveCluster
from webhook.watch.polling import Polling
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


@pytest.mark.usefixtures("longest_pauses")
def test_pause_is_short_again_after_an_event() -> None:
    reflector = reflector_of_nodes()
    for _ in range(5):
        reflector._pause_seconds()
    reflector._apply(orjson.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}))
    assert (reflector._pause_seconds(), reflector.version) == (0.25, "7")


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

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": "7"}}


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


@pytest.mark.parametrize("request_of", [Reflector._list, Reflector._catch_up_target])
def test_answer_shows_that_the_api_server_is_there_again(request_of: Callable[..., Any]) -> None:
    reached: list[None] = []
    reflector = reflector_of_nodes(on_reachable=lambda: reached.append(None))
    reflector._handle_error(UNREACHABLE)
    asyncio.run(request_of(reflector, ServerWithNodes()))
    assert (reflector.is_unreachable, len(reached)) == (False, 1)


def test_response_that_breaks_off_does_not_show_that_the_api_server_is_there_again() -> None:
    reflector = reflector_of_nodes()
    reflector._handle_error(UNREACHABLE)
    reflector._handle_error(ApiServerError("the response is incomplete"))
    assert reflector.is_unreachable


def test_event_of_a_watch_that_follows_a_list_makes_the_view_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event alone, since a quiet watch can last for half a minute more."""
    seen: list[float | None] = []

    class Server:
        async def lines(self, *_: Any) -> AsyncIterator[list[bytes]]:
            for name in "ab":
                clock.seconds += 7
                yield [orjson.dumps({"type": "ADDED", "object": versioned_node(name)})]
                seen.append(reflector.current_as_of_seconds)

    clock, reflector, server = SimpleNamespace(seconds=100.0), reflector_of_nodes(), Server()
    monkeypatch.setattr("webhook.watch.reflector.time", SimpleNamespace(monotonic=lambda: clock.seconds))
    asyncio.run(reflector._watch(server, "5"))  # type: ignore[arg-type] # what is called
    assert seen == [107.0, 114.0]


def test_refusal_shows_that_the_api_server_is_there_again() -> None:
    reached: list[float] = []
    reflector = reflector_of_nodes(on_reachable=lambda: reached.append(time.monotonic()))

    reflector._handle_error(UnreachableError("the API server does not answer"))
    before = (reflector.is_unreachable, len(reached))
    reflector._handle_error(ApiServerError("429 Too Many Requests", 429))

    assert before == (True, 0)
    assert (reflector.is_unreachable, len(reached)) == (False, 1)


def attempts_after(error: Exception, *, woken: bool = False) -> tuple[int, int]:
    """Return the number of attempts and of faults of a reflector with long pauses whose connections all fail."""
    attempts: list[None] = []
    faults: list[None] = []

    def connect() -> Any:
        attempts.append(None)
        if len(attempts) > 3:
            raise asyncio.CancelledError
        raise error

    async def run() -> None:
        timing = Timing(first_pause_seconds=1000, longest_pause_seconds=1000)
        reflector = Reflector(NODE, ClusterCache(), connect, timing, on_fault=lambda: faults.append(None))
        task = asyncio.create_task(reflector.run())
        for turn in range(20):
            await asyncio.sleep(0)
            if woken and turn == 10:
                reflector.wake()
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    with capture_logs():
        asyncio.run(run())
    return len(attempts), len(faults)


UNREACHABLE = UnreachableError("the API server does not answer")
REFUSED = ApiServerError("starting", 503)
NO_KUBECONFIG = InvalidInput([required("--kubeconfig", "no cluster can be read from it")])


@pytest.mark.parametrize(
    ("error", "faults"), [(UNREACHABLE, 0), (REFUSED, 0), (NO_KUBECONFIG, 0), (LookupError("a fault"), 1)], ids=repr
)
def test_api_server_is_not_asked_again_before_the_pause_is_over(error: Exception, faults: int) -> None:
    assert attempts_after(error) == (1, faults)


@pytest.mark.parametrize(("error", "attempts"), [(UNREACHABLE, 2), (REFUSED, 1)], ids=repr)
def test_only_a_pause_after_no_answer_ends_when_the_api_server_is_back(error: Exception, attempts: int) -> None:
    assert attempts_after(error, woken=True) == (attempts, 0)


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


def test_view_has_only_namespaces_until_every_required_kind_is_listed() -> None:
    def connect() -> Any:
        raise AssertionError("no connection is made here")

    cache = ClusterCache()
    cache.apply("Node", "ADDED", versioned_node("a"))
    cache.apply("Namespace", "ADDED", {"metadata": {"name": "n", "annotations": {"a": "1"}, "resourceVersion": "1"}})
    live, sizes = LiveCluster(connect, cache=cache), list[int]()
    for reflector in live._required:
        sizes.append(len(live.snapshot().nodes))
        assert dict(live.snapshot().namespace_annotations("n")) == {"a": "1"}
        reflector.current_as_of_seconds = 0.0
    assert sizes == [0] * len(live._required)
    assert len(live.snapshot().nodes) == 1


@pytest.mark.parametrize("is_synced", [False, True])
@pytest.mark.parametrize("configuration", ["", "webhook"])
def test_optional_kinds_are_followed_once_the_required_ones_are_listed(
    monkeypatch: pytest.MonkeyPatch, configuration: str, *, is_synced: bool
) -> None:
    started: list[str] = []

    async def sleep(_: float) -> None:
        names.append(None)
        if len(names) > 2:
            started.extend(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())
            raise asyncio.CancelledError

    async def nothing(*_: object) -> None:
        await asyncio.Event().wait()

    def connect() -> Any:
        raise AssertionError("no connection is made here")

    names: list[None] = []
    monkeypatch.setattr("webhook.watch.live.asyncio.sleep", sleep)
    monkeypatch.setattr(Reflector, "run", nothing)
    for polled in ("scheduler_evidence", "release", "webhook_configuration"):
        monkeypatch.setattr(Polling, polled, nothing)
    live = LiveCluster(connect, webhook_configuration=configuration)
    for reflector in live._required:
        reflector.current_as_of_seconds = 0.0 if is_synced else None
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(live.run())

    of_resources = [each for each in RESOURCES if each.is_required or is_synced]
    wanted = ["signs of schedulers", "release of the cluster", *(["webhook configuration"] if configuration else [])]
    assert sorted(started) == sorted([*wanted, *(f"reflector of {each.kind}" for each in of_resources)])


def test_reflectors_of_a_view_wake_each_other_and_report_their_faults() -> None:
    faults: list[None] = []

    class Follower(ClusterFollower):
        def failed(self) -> None:
            faults.append(None)

    def connect() -> Any:
        raise LookupError

    async def run() -> list[bool]:
        live = LiveCluster(connect, Follower(), timing=Timing(first_pause_seconds=1000, longest_pause_seconds=1000))
        assert len({id(each._gate) for each in live._reflectors}) == 1, "one page is decoded at a time"
        first, *others = live._reflectors
        task = asyncio.create_task(first.run())
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        for each in (first, others[0], others[-1]):
            each._handle_error(UNREACHABLE)
        first._handle_error(REFUSED)
        return [each._woken.is_set() for each in (first, *others)]

    with capture_logs():
        woken = asyncio.run(run())
    assert (len(faults), woken) == (1, [False, True, *[False] * (len(woken) - 3), True])


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
