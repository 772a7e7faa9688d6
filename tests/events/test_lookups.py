"""The objects that an Event is on: the pod, and the owner of its owner."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.events.scene import WALL_SECONDS, Scene, pod_of, stored
from tests.support.objects.builders import make_pod
from webhook.events.lookups import pods_of
from webhook.events.report import Report
from webhook.events.subject import ObjectReference, controller_of

DENIED = Report("PlacementDenied", "a pod is refused: no such type")
WAITING = Report("PlacementWaiting", "no node can take the pod now: 0/1 nodes are available: 1 Insufficient cpu.")
Play = Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]


def test_event_of_a_replica_set_is_on_its_deployment_too(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        metadata = make_pod("web").owner("Deployment", "shop").uid("uid-of-web").obj()["metadata"]
        scene.api.replica_sets["web"] = {"metadata": metadata}
        for _ in range(2):
            scene.report(pod_of("web"), DENIED)
            await scene.after(1)
            await scene.after(1)
        assert scene.api.counts() == {("web", "PlacementDenied"): 2, ("shop", "PlacementDenied"): 2}

    play(scene)


def test_owner_of_another_replica_set_of_that_name_gets_none(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        metadata = make_pod("web").owner("Deployment", "shop").uid("an older one").obj()["metadata"]
        scene.api.replica_sets["web"] = {"metadata": metadata}
        scene.report(pod_of("web"), DENIED)
        await scene.after(1)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}

    play(scene)


@pytest.mark.parametrize("code", [403, 404])
def test_replica_set_that_cannot_be_read_gets_the_event_alone(play: Play, code: int) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(code, "")]
        scene.report(pod_of("web"), DENIED)
        await scene.after(1)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}
        assert scene.results() == {"written": 1}

    assert play(scene) == []


def test_pod_that_is_stored_late_gets_its_event(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web"), WAITING)
        await scene.after(1)
        assert scene.api.events == {}
        scene.api.pods = [stored(1)]
        await scene.after(3)
        assert scene.api.counts() == {("web-1", "PlacementWaiting"): 1}

    play(scene)


def test_pod_that_is_never_stored_is_given_up(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web"), WAITING)
        for _ in range(10):
            await scene.after(30)
        assert len(scene.api.asked) == 4
        assert scene.results() == {"no_object": 1}
        assert scene.recorder.is_idle

    play(scene)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(stored(1, created="2025-12-31T23:59:50Z"), id="created before"),
        pytest.param(stored(1, owner="api"), id="of another owner"),
        pytest.param({"metadata": stored(1)["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:02Z"}}, id="deleted"),
    ],
)
def test_event_is_on_no_other_pod(play: Play, other: dict[str, Any]) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.pods = [other]
        scene.report(pod_of("web"), WAITING)
        await scene.after(1)
        assert scene.api.events == {}

    play(scene)


@pytest.mark.parametrize(("more", "found"), [("", 1), ("token", None)])
def test_pods_of_which_only_a_page_is_read_are_too_many(more: str, found: int | None) -> None:
    """Which of them are new is not known, so their owner gets the Event."""

    class Server:
        async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"items": [stored(1)], "metadata": {"continue": more} if more else {}}

    subject = controller_of(stored(1)["metadata"], "team-a")
    assert subject is not None

    pods = asyncio.run(pods_of(Server(), subject, 0.0))  # type: ignore[arg-type] # what is called

    assert (None if pods is None else len(pods)) == found


@pytest.mark.parametrize("is_controlled", [True, False])
def test_pods_without_a_node_are_asked_for_and_without_a_controller_by_name(is_controlled: bool) -> None:
    """Those since five seconds before the admission are found, the oldest first."""
    asked: list[Any] = []
    owned = [stored(number, created=f"2026-01-01T00:00:{second:02}Z") for number, second in enumerate((9, 4, 5, 30))]
    alone = [{"metadata": {**each["metadata"], "ownerReferences": []}} for each in owned]

    class Server:
        async def get(self, path: str, query: Any, *_: Any, **__: Any) -> dict[str, Any]:
            asked.extend((path, query["fieldSelector"]))
            return {"items": [*owned, *alone], "metadata": {}}

    owner = controller_of(owned[0]["metadata"], "team-a")
    subject = owner if is_controlled else ObjectReference("v1", "Pod", "team-a", "web-7", "")
    assert subject is not None

    pods = asyncio.run(pods_of(Server(), subject, WALL_SECONDS + 10))  # type: ignore[arg-type] # what is called

    selector = "spec.nodeName=" if is_controlled else "spec.nodeName=,metadata.name=web-7"
    assert asked == ["/api/v1/namespaces/team-a/pods", selector]
    assert [each.uid for each in pods or ()] == ["uid-of-web-2", "uid-of-web-0", "uid-of-web-3"]


def test_of_two_pods_the_one_that_is_stored_later_gets_its_event_later(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for _ in range(2):
            scene.report(pod_of("web"), WAITING)
        scene.api.pods = [stored(1)]
        await scene.after(1)
        assert scene.api.counts() == {("web-1", "PlacementWaiting"): 1}
        scene.api.pods = [stored(1), stored(2)]
        await scene.after(3)
        assert scene.api.counts() == {("web-1", "PlacementWaiting"): 1, ("web-2", "PlacementWaiting"): 1}

    play(scene)
