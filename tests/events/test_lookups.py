"""The objects that an Event is on: the pod, and the owner of its owner."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.events.scene import Scene, pod_of, stored
from tests.support.objects.builders import make_pod
from webhook.events.report import Report

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
