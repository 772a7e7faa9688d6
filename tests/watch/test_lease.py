"""At most one replica is the leader, and another takes over when it ends or cannot renew its Lease."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from webhook.documents.field import InvalidInput, required
from webhook.watch.api_errors import ApiServerError
from webhook.watch.lease import LeaseOptions, lead

PATH = "/apis/coordination.k8s.io/v1/namespaces/system/leases/export"
ELECTION = "kubernetes.aio.leaderelection.leaderelection"
DOWN = ApiServerError("the API server is down", 503)
NO_KUBECONFIG = InvalidInput([required("--kubeconfig", "no such file")])


class Scene:
    """An API server with a Lease, replicas that want it, and the time, which passes only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_800_000_000.0
        self.lease: dict[str, Any] | None = None
        self.working: list[str] = []
        self.events: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.managers: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        monkeypatch.setattr(f"{ELECTION}.time", SimpleNamespace(time=lambda: self.seconds))
        monkeypatch.setattr(f"{ELECTION}.asyncio", SimpleNamespace(sleep=self.sleep, create_task=asyncio.create_task))

    async def sleep(self, seconds: float) -> None:
        end = self.seconds + seconds
        while self.seconds < end:  # noqa: ASYNC110 - the time of the scene tells no event
            await asyncio.sleep(0)

    async def passes(self, seconds: float) -> None:
        """Let this time pass in quarters of a second."""
        for _ in range(round(4 * seconds)):
            self.seconds += 0.25
            for _ in range(20):
                await asyncio.sleep(0)

    @property
    def holder(self) -> str:
        return self.lease["spec"]["holderIdentity"] if self.lease else ""

    async def start(self, *names: str) -> None:
        """Start these replicas at once."""
        for name in names:
            options = LeaseOptions("system", "export", name)
            self._tasks[name] = asyncio.create_task(lead(self._connect(name), options, self._work(name)))
        await self.passes(0.25)

    async def stop(self, name: str) -> None:
        task = self._tasks.pop(name)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def stop_all(self) -> None:
        for name in list(self._tasks):
            await self.stop(name)

    def _work(self, name: str) -> Callable[[], Any]:
        async def work() -> None:
            self.working.append(name)
            assert self.working == [name], "two replicas are the leader"
            try:
                await asyncio.Event().wait()
            finally:
                self.working.remove(name)
                self.events.append(f"{name} ends, {self.holder or 'no replica'} holds the Lease")

        return work

    def _connect(self, name: str) -> Any:
        @asynccontextmanager
        async def connect() -> AsyncIterator[Scene]:
            if name in self.failures:
                raise self.failures[name]
            yield self

        return connect

    async def get(self, path: str, _: object) -> dict[str, Any]:
        assert path == PATH
        await asyncio.sleep(0)
        if self.lease is None:
            raise ApiServerError("not found", 404)
        return deepcopy(self.lease)

    async def apply(self, path: str, content: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        assert (path, content["kind"], content["metadata"]) == (PATH, "Lease", {"name": "export"})
        if self.lease is not None:
            raise ApiServerError("conflict with another manager", 409)
        self.managers.add(query["fieldManager"])
        self.lease = {"metadata": {"resourceVersion": "1"}, "spec": content["spec"]}
        return deepcopy(self.lease)

    async def patch(self, path: str, body: dict[str, Any], _: object) -> dict[str, Any]:
        assert path == PATH
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiServerError("the Lease has changed", 409)
        version = str(int(self.lease["metadata"]["resourceVersion"]) + 1)
        self.lease = {"metadata": {"resourceVersion": version}, "spec": {**self.lease["spec"], **body["spec"]}}
        return deepcopy(self.lease)


Play = Callable[[Callable[[Scene], Any]], list[Any]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a scene and returns its log."""

    def run(scene: Callable[[Scene], Any]) -> list[Any]:
        async def played() -> None:
            made = Scene(monkeypatch)
            try:
                await scene(made)
            finally:
                await made.stop_all()

        with capture_logs() as logs:
            asyncio.run(played())
        return logs

    return run


def test_work_ends_with_the_leadership_and_begins_once_with_the_next_one(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.start("only")
        for losses in (1, 2):
            assert scene.working == ["only"]
            scene.failures["only"] = DOWN
            await scene.passes(12)
            assert (scene.working, len(scene.events)) == ([], losses)
            scene.failures.clear()
            await scene.passes(20)
        assert scene.working == ["only"]

    play(scene)


def test_a_replica_that_ends_without_being_the_leader_leaves_the_lease(play: Play) -> None:
    """At any time between its reads of the Lease and the writes of the leader."""

    async def scene(scene: Scene) -> None:
        await scene.start("first")
        for quarters in range(12):
            await scene.start("second")
            await scene.passes(quarters / 4)
            await scene.stop("second")
            assert scene.lease is not None
            assert (scene.holder, scene.lease["spec"]["leaseDurationSeconds"]) == ("first", 15)
        assert (scene.working, scene.events) == (["first"], [])

    play(scene)


def test_leader_renews_its_lease_and_gives_it_up_when_its_work_has_ended(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.start("a" * 130)
        assert scene.lease is not None
        first = scene.lease["spec"]
        assert (first["holderIdentity"], first["leaseDurationSeconds"]) == ("a" * 130, 15)
        assert first["acquireTime"] == first["renewTime"] == "2027-01-15T08:00:00.250000Z"
        assert scene.managers == {"a" * 128}
        await scene.passes(2)
        renewed = scene.lease["spec"]
        assert (renewed["acquireTime"], renewed["renewTime"]) == (first["acquireTime"], "2027-01-15T08:00:02.250000Z")
        await scene.stop("a" * 130)
        assert scene.events == [f"{'a' * 130} ends, {'a' * 130} holds the Lease"]
        assert (scene.holder, scene.lease["spec"]["leaseDurationSeconds"]) == ("", 1)

    (log,) = play(scene)
    assert (log["event"], log["lease"], log["holder"]) == (
        "this replica is the leader",
        "system/export",
        "a" * 130,
    )


def test_of_two_replicas_that_start_at_once_one_works_until_it_ends(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.start("a", "b")
        (first,) = scene.working
        await scene.passes(40)
        assert scene.working == [first] == [scene.holder]
        await scene.stop(first)
        await scene.passes(2)
        (second,) = scene.working
        assert {first, second} == {"a", "b"}
        await scene.start(first)
        await scene.passes(40)
        assert scene.working == [second] == [scene.holder]

    assert [each["event"] for each in play(scene)] == ["this replica is the leader"] * 2


@pytest.mark.parametrize("failure", [DOWN, NO_KUBECONFIG, ApiServerError("not found", 404)], ids=str)
def test_replica_that_cannot_renew_ends_its_work_before_another_takes_over(play: Play, failure: Exception) -> None:
    async def scene(scene: Scene) -> None:
        await scene.start("a")
        await scene.start("b")
        assert scene.working == ["a"]
        scene.failures["a"] = failure
        await scene.passes(9)
        assert scene.working == ["a"]
        await scene.passes(4)
        assert (scene.working, scene.events) == ([], ["a ends, a holds the Lease"])
        await scene.passes(8)
        assert scene.working == ["b"] == [scene.holder]
        del scene.failures["a"]
        await scene.passes(4)
        await scene.stop("a")
        assert scene.working == ["b"] == [scene.holder]

    logs = play(scene)
    events = ["this replica is the leader", "this replica is no longer the leader", "this replica is the leader"]
    assert [each["event"] for each in logs if each["event"].startswith("this")] == events


def test_replica_that_was_the_leader_works_again_after_an_outage(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        await scene.start("a")
        scene.failures["a"] = DOWN
        await scene.passes(13)
        assert scene.working == []
        del scene.failures["a"]
        await scene.passes(2)
        assert scene.working == ["a"] == [scene.holder]

    play(scene)


def test_each_failure_is_logged_once_but_not_that_there_is_no_lease_or_another_was_faster(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for failure in (DOWN, ApiServerError("not found", 404), ApiServerError("conflict", 409), NO_KUBECONFIG, DOWN):
            scene.failures["a"] = failure
            await (scene.passes(6) if scene.holder or scene.events else scene.start("a"))
            scene.events.append("started")
        del scene.failures["a"]
        await scene.passes(4)
        assert scene.working == ["a"]
        scene.failures["a"] = DOWN
        await scene.passes(4)

    logs = play(scene)
    held = [each["error"] for each in logs if each["event"] != "this replica is the leader"]
    assert held == [str(DOWN), str(NO_KUBECONFIG), str(DOWN), str(DOWN)]
    assert {each["lease"] for each in logs} == {"system/export"}
