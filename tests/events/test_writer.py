"""An Event is created, or the count of the one that is there is raised."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.events.scene import Scene, pod_of, stored
from webhook.events.report import Report

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


def test_event_that_the_api_server_has_dropped_is_created_again(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        scene.api.events.clear()
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(2)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}

    play(scene)
