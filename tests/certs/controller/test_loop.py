"""Passes and watches: when the next one begins, and what is reported of those that fail."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.controller import loop
from certs.controller.admin import ControllerMetrics
from certs.controller.loop import Controller, WritePacing, backoff_seconds, run_until_signalled
from certs.controller.reconciler import Pass
from certs.plan import Action, Step
from tests.certs.controller.quiet import OPTIONS, Quiet
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.live import until
from webhook.documents.field import InvalidInput
from webhook.runtime.settings import Address
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 0.5, 1.0), (2, 1.0, 2.0), (4, 4.0, 8.0), (9, 15.0, 30.0), (5000, 15.0, 30.0)]
)
def test_pauses_double_up_to_half_a_minute_and_are_half_random(failures: int, least: float, most: float) -> None:
    assert (backoff_seconds(failures, 0.0), backoff_seconds(failures, 1.0)) == (least, most)


def test_the_changes_of_a_rotation_are_not_slowed_down() -> None:
    pacing = WritePacing()
    for at in range(12):
        pacing.note(at)
    assert pacing.pause_seconds(12) == 0.0


@pytest.mark.parametrize("started", [0.0, 100_000.0])
def test_a_fight_is_slowed_down_to_a_change_in_three_seconds_and_forgotten_after_a_minute(started: float) -> None:
    pacing, now, pauses = WritePacing(), started, []
    for _ in range(60):
        pacing.note(now)
        pauses.append(pacing.pause_seconds(now))
        now += pauses[-1]
    assert pauses == [*([0.0] * 12), *([3.0] * 48)]
    assert pacing.pause_seconds(now + 60) == 0.0


class Unsteady(Quiet):
    """An API server whose answers about the Secret are errors where `fails` says so, and all further ones, too."""

    def __init__(self, fails: Iterator[bool]) -> None:
        super().__init__(asyncio.Event())
        self._fails = fails

    async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        if path == OPTIONS.watched[0].path and next(self._fails, True):
            raise ApiServerError("it is away", 500)
        return await super().get(path)


def test_pauses_begin_anew_after_a_pass_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[int] = []

    def note(count: int, _: float) -> float:
        failures.append(count)
        return 0.0

    monkeypatch.setattr(loop, "backoff_seconds", note)

    async def run() -> None:
        stop, server = asyncio.Event(), Unsteady(iter([True, True, False, True]))
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=0)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        await until(lambda: len(failures) > 3)
        stop.set()
        await running

    asyncio.run(run())
    assert failures[:4] == [1, 2, 1, 2]


def test_an_event_during_a_pass_leads_to_another_pass() -> None:
    """The objects may have changed after they were read."""

    async def run() -> None:
        event, stop = asyncio.Event(), asyncio.Event()

        class Changing(Quiet):
            async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
                if not self.reads:
                    event.set()
                    for _turn in range(20):
                        await asyncio.sleep(0)
                return await super().get(path)

        server = Changing(event)
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=3600)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        async with asyncio.timeout(20):
            while server.reads <= len(OPTIONS.watched):  # noqa: ASYNC110 - a read is no event
                await asyncio.sleep(0)
        stop.set()
        await running

    asyncio.run(run())


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def run_controller(
    server: Quiet, check: Callable[[Controller], Any], metrics: ControllerMetrics | None = None, resync: float = 3600
) -> list[MutableMapping[str, Any]]:
    """Run a controller until `check` returns, and return what it has logged."""

    async def run() -> None:
        stop = asyncio.Event()
        controller = Controller(
            OPTIONS, lambda: server, metrics or ControllerMetrics(), resync_seconds=resync, random_share=lambda: 0.0
        )
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        async with asyncio.timeout(20):
            await check(controller)
        stop.set()
        await running

    with capture_logs() as logs:
        asyncio.run(run())
    return logs


def test_an_event_leads_to_one_pass_and_no_more() -> None:
    event = asyncio.Event()

    class OneEvent(Quiet):
        async def lines(self, path: str, *_: Any) -> AsyncGenerator[list[bytes], None]:
            if path != OPTIONS.watched[0].collection:
                await asyncio.Event().wait()
            async for lines in super().lines(path):
                yield lines

    server = OneEvent(event)

    async def check(controller: Controller) -> None:
        assert (controller.unready_reason(), controller.note()) == ("no pass is complete yet", "")
        await until(lambda: controller.unready_reason() == "")
        await turns()
        reads = server.reads
        event.set()
        await until(lambda: server.reads > reads)
        await turns(200)
        assert server.reads - reads == len(OPTIONS.watched)
        assert controller.unready_reason() == ""

    run_controller(server, check)


def test_passes_that_always_write_are_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that wrote is followed by the next one at once; the thirteenth waits."""
    passes: list[None] = []

    async def write(*_: object) -> Pass:
        passes.append(None)
        return Pass(Step(Action.KEEP, ()), tried=True)

    monkeypatch.setattr("certs.controller.reconciler.Reconciler.reconcile", write)

    async def check(_: Controller) -> None:
        await until(lambda: len(passes) == 13)
        await turns(200)
        assert len(passes) == 13

    run_controller(Quiet(asyncio.Event()), check)


class Failing(Quiet):
    """An API server that answers with these errors in turn, and then as it should."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(asyncio.Event())
        self._errors = iter(errors)

    async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        for error in self._errors:
            raise error
        return await super().get(path)


def test_a_failure_is_counted_each_time_and_logged_once_until_it_changes_or_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "backoff_seconds", lambda *_: 0.0)
    metrics, reasons = ControllerMetrics(), list[str]()
    away = ApiServerError("it is away")
    server = Failing(away, away, ApiServerError("it is busy", 500), KeyError("spec"))

    async def check(controller: Controller) -> None:
        while controller.unready_reason():
            if controller.unready_reason() not in reasons:
                reasons.append(controller.unready_reason())
            await asyncio.sleep(0)

    logs = run_controller(server, check, metrics, resync=0.0)

    messages = ["it is away", "it is busy", "internal error: KeyError('spec')"]
    assert reasons == ["no pass is complete yet", *messages]
    assert metrics.failures._value.get() == 4
    shown = [(each["log_level"], each["event"], each.get("error")) for each in logs]
    of_ours = [each for each in shown if each[1] != "a watch failed"]
    assert of_ours == [
        ("info", "the certs controller runs", None),
        ("error", "the certificates are not maintained", messages[0]),
        ("error", "the certificates are not maintained", messages[1]),
        ("error", "internal error", None),
        ("error", "the certificates are not maintained", messages[2]),
        ("info", "the certificates are maintained", None),
        ("info", "the certs controller ends", None),
    ]
    began, again = logs[0], logs[-2]
    assert began["secret"] == "Secret placement-webhook/placement-webhook-tls"
    assert began["configurations"] == ["00-placement-webhook"]
    assert began["admin"].startswith("127.0.0.1:")
    assert (again["action"], again["reasons"]) == ("keep", ["everything is in order"])


class Watched(Quiet):
    """An API server whose watches of the Secret end as each item says, or not at all after an event that is an item.

    They end with an error, or in order without an event.
    """

    def __init__(self, *ends: Exception | bytes | None) -> None:
        super().__init__(asyncio.Event())
        self.queries: list[tuple[str, dict[str, Any]]] = []
        self._ends = iter(ends)

    async def lines(self, path: str, query: Mapping[str, str | int], *_: Any) -> AsyncGenerator[list[bytes], None]:
        self.queries.append((path, {**query}))
        for end in self._ends if path.endswith("/secrets") else ():
            if isinstance(end, bytes):
                yield [end]
                break
            if end is not None:
                raise end
            return
        await asyncio.Event().wait()
        yield []


def test_a_watch_asks_for_one_object_by_name_and_for_bookmarks() -> None:
    server = Watched()

    async def check(_: Controller) -> None:
        await until(lambda: len(server.queries) == len(OPTIONS.watched))

    run_controller(server, check)
    shared = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": 300}
    assert server.queries == [
        (each.collection, shared | {"fieldSelector": f"metadata.name={each.name}"}) for each in OPTIONS.watched
    ]


def test_a_watch_that_fails_is_reported_once_tried_again_later_each_time_and_forgotten_when_it_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when the next watch ends without an event, as that of an object that does not exist."""
    failures, reasons = list[int](), list[str]()

    def note(count: int, _: float) -> float:
        failures.append(count)
        return 0.0

    monkeypatch.setattr(loop, "backoff_seconds", note)
    gone, other = ApiServerError("it is over", 410), RuntimeError("odd")
    server = Watched(gone, gone, other, None, gone, None)

    async def check(controller: Controller) -> None:
        await until(lambda: len(server.queries) == 8)
        await turns()
        reasons.append(controller.unready_reason())

    logs = run_controller(server, check)

    assert failures == [1, 2, 3, 1]
    assert reasons == [""]
    shown = [each["error"] for each in logs if each["event"] == "a watch failed"]
    assert shown == ["it is over", "internal error: RuntimeError('odd')", "it is over"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_controller_that_shows_the_metrics_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    shown: list[float | None] = []

    class Signalled(Controller):
        async def run(self, stop: asyncio.Event, admin: Address, *_: Any) -> None:
            assert admin == Address("127.0.0.1", 0)
            shown.append(self._metrics.registry.get_sample_value("process_open_fds"))
            signal.raise_signal(number)
            async with asyncio.timeout(20):
                await stop.wait()

    monkeypatch.setattr(loop, "Controller", Signalled)
    source = ClientConfig(write_kubeconfig(tmp_path, "http://127.0.0.1:1"))
    asyncio.run(run_until_signalled(OPTIONS, Address("127.0.0.1", 0), source))

    assert shown != [None]
    assert len(shown) == 1


def test_passes_that_write_nothing_are_not_slowed_down_and_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[None] = []

    async def keep(*_: object) -> Pass:
        passes.append(None)
        return Pass(Step(Action.KEEP, ()), tried=False)

    monkeypatch.setattr("certs.controller.reconciler.Reconciler.reconcile", keep)

    async def check(_: Controller) -> None:
        await until(lambda: len(passes) > 40)

    logs = run_controller(Quiet(asyncio.Event()), check)
    assert [each["event"] for each in logs].count("the certificates are maintained") == 1


def test_an_error_outside_a_pass_ends_the_controller() -> None:
    """Its pod is then started again, which a controller that only waits would not be."""

    def share() -> float:
        raise RuntimeError("no randomness")

    async def run() -> None:
        server = Failing(ApiServerError("it is away"))
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), random_share=share)
        async with asyncio.timeout(20):
            await controller.run(asyncio.Event(), Address("127.0.0.1", 0))

    with pytest.raises(RuntimeError, match="no randomness"):
        asyncio.run(run())


def test_a_failure_of_a_watch_is_forgotten_at_the_first_event_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on for minutes."""
    monkeypatch.setattr(loop, "backoff_seconds", lambda *_: 0.0)
    server = Watched(ApiServerError("it is over", 410), b'{"type": "ADDED"}')

    async def check(controller: Controller) -> None:
        await until(lambda: len(server.queries) == 3)
        await until(lambda: controller.unready_reason() == "")

    assert [each["error"] for each in run_controller(server, check) if each["event"] == "a watch failed"] == [
        "it is over"
    ]


def test_a_kubeconfig_that_is_missing_is_an_error_before_the_controller_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Controller, "run", None)
    with pytest.raises(InvalidInput, match="--kubeconfig"):
        asyncio.run(run_until_signalled(OPTIONS, Address("127.0.0.1", 0), ClientConfig(tmp_path / "absent")))
