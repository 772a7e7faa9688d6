"""An Event is created, or the count of the one that is there is raised."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.events.scene import WALL_SECONDS, Scene, pod_of, stored
from webhook.events.backlog import PendingReport
from webhook.events.report import Report
from webhook.events.subject import ObjectReference
from webhook.events.writer import write
from webhook.kube.names import is_dns_subdomain

DENIED = Report("PlacementDenied", "a pod is refused: no such type")
WAITING = Report("PlacementWaiting", "no node can take the pod now: 0/1 nodes are available: 1 Insufficient cpu.")
Play = Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]


def test_equal_reports_raise_the_count_of_one_event(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for seconds in (1, 2, 4, 8):
            for _ in range(3):
                scene.report(pod_of("web", "Job"), DENIED)
            await scene.after(seconds + 1)
        assert scene.api.counts() == {("web", "PlacementDenied"): 12}
        (event,) = scene.api.events.values()
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z")
        assert scene.results() == {"written": 4}

    play(scene)


def test_event_of_another_replica_is_counted_on(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        (event,) = scene.api.events.values()
        event["count"], event["metadata"]["resourceVersion"] = 7, "9"
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(2)
        assert scene.api.counts() == {("web", "PlacementDenied"): 8}

    play(scene)


def test_two_replicas_that_count_at_once_lose_no_pod(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        (event,), patch = scene.api.events.values(), scene.api._patch

        def read_before_another_writes(name: str, changes: dict[str, Any]) -> Any:
            answer = patch(name, changes)
            if event["count"] == 1:
                event["count"], event["metadata"]["resourceVersion"] = 7, "9"
            return answer

        scene.api._patch = read_before_another_writes  # type: ignore[method-assign, assignment]
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(2)
        assert scene.api.counts() == {("web", "PlacementDenied"): 8}

    play(scene)


def test_event_of_a_pod_that_another_replica_has_written_is_left_as_it_is(play: Play) -> None:
    """The API server calls one replica in the first round and another in the second."""

    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(1)]
        other = Scene(scene.api, scene.folder)
        for each in (scene, other):
            each.report(pod_of("web"), WAITING)
            await each.after(1)
        assert scene.api.counts() == {("web-1", "PlacementWaiting"): 1}
        assert [each for each in scene.api.asked if each.startswith("PATCH")] == []

    play(scene)


def test_event_that_is_dropped_while_its_count_is_raised_is_created_again(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        patch = scene.api._patch

        def dropped_meanwhile(name: str, changes: dict[str, Any]) -> Any:
            scene.api.events.clear()
            scene.api._patch = patch  # type: ignore[method-assign]
            return patch(name, changes)

        scene.api._patch = dropped_meanwhile  # type: ignore[method-assign, assignment]
        for _ in range(2):
            scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(2)
        assert scene.api.counts() == {("web", "PlacementDenied"): 2}
        assert scene.results() == {"written": 2}

    play(scene)


def test_event_that_the_api_server_has_dropped_is_created_again(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        scene.api.events.clear()
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(2)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}

    play(scene)


@pytest.mark.parametrize(
    ("target", "namespace"),
    [
        (ObjectReference("batch/v1", "Job", "team-a", "web", "uid-1"), "team-a"),
        (ObjectReference("placement.maip.mxsf.io/v1alpha1", "PlacementPolicy", "", "web", "uid-1"), "default"),
    ],
    ids=["in a namespace", "of the cluster"],
)
def test_event_names_its_object_its_times_and_its_writer(target: ObjectReference, namespace: str) -> None:
    """An Event on an object of the cluster is in the namespace `default`."""
    created: list[tuple[str, dict[str, Any]]] = []

    class Server:
        async def create(self, path: str, content: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
            assert query == {"fieldManager": "placement-webhook"}
            created.append((path, content))
            return content

    server: Any = Server()
    pending = PendingReport(DENIED, target, WALL_SECONDS + 1.9, WALL_SECONDS + 61, 0.0)
    asyncio.run(write(server, pending, target, 3, "replica-a", "Load"))

    ((path, event),) = created
    name = event["metadata"].pop("name")
    assert (path, name[:4], len(name)) == (f"/api/v1/namespaces/{namespace}/events", "web.", 20)
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace},
        "involvedObject": {
            "apiVersion": target.api_version,
            "kind": target.kind,
            "namespace": target.namespace,
            "name": "web",
            "uid": "uid-1",
        },
        "type": "Warning",
        "reason": "PlacementDenied",
        "message": DENIED.note,
        "action": "Load",
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:01Z",
        "lastTimestamp": "2026-01-01T00:01:01Z",
        "source": {"component": "placement-webhook"},
        "reportingComponent": "placement-webhook",
        "reportingInstance": "replica-a",
    }


def test_events_that_differ_in_object_reason_or_topic_have_names_of_their_own_within_the_limit() -> None:
    names: list[str] = []

    class Server:
        async def create(self, _: str, content: dict[str, Any], __: object) -> dict[str, Any]:
            names.append(content["metadata"]["name"])
            return content

    server: Any = Server()
    for name, uid, report in (
        ("a" * 253, "1", DENIED),
        ("a" * 253, "2", DENIED),
        ("a" * 253, "1", Report("PlacementWaiting", DENIED.note)),
        ("a" * 253, "1", Report(DENIED.reason, "another note")),
        ("a" * 235 + ".b", "1", DENIED),
    ):
        target = ObjectReference("batch/v1", "Job", "team-a", name, uid)
        asyncio.run(write(server, PendingReport(report, target, 0.0, 0.0, 0.0), target, 1, "replica-a"))

    assert len({*names}) == 5
    assert max(map(len, names)) == 253
    assert all(is_dns_subdomain(each) for each in names)
