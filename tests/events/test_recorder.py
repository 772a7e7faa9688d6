"""Reports become Events off the request path: aggregated, bounded, tried again and given up, on a given clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.fake_events_api import DENIED_BY_WEBHOOK, LACKS_RIGHT, FakeEventsApi, fake_events_api
from tests.support.servers.live import until
from tests.support.servers.server import Clock, review_bytes
from webhook.events.backlog import MOST_ITEMS
from webhook.events.recorder import Clocks, EventRecorder
from webhook.events.report import Report
from webhook.events.subject import ObjectReference
from webhook.kube.api.admission import parse_review
from webhook.runtime.metrics import EVENT_RESULTS, Metrics
from webhook.watch.api_server import ClientConfig

DENIED = Report("PlacementDenied", "a pod is refused: no such type")
WAITING = Report("PlacementWaiting", "no node can take the pod now: 0/1 nodes are available: 1 Insufficient cpu.")
WALL_SECONDS = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
POLICY = policy_with()


@dataclass
class Scene:
    """A recorder, the API server that it writes to, and its clock."""

    api: FakeEventsApi
    folder: Path
    clock: Clock = field(default_factory=Clock)
    metrics: Metrics = field(default_factory=Metrics)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = ClientConfig(self.api.kubeconfig(self.folder))
        clocks = Clocks(self.clock, lambda: WALL_SECONDS + self.clock.seconds - 1000, self.sleep)
        self.recorder = EventRecorder(source.connect, self.metrics, "replica-a", clocks)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.seconds += seconds

    def report(self, pod: PodBuilder, report: Report | None, namespace: str = "team-a", **request: Any) -> None:
        self.recorder.report(parse_review(review_bytes(pod.obj(), namespace=namespace, **request)), report, POLICY)

    async def after(self, seconds: float) -> None:
        self.clock.seconds += seconds
        await self.recorder.write_due()

    def results(self) -> dict[str, float]:
        found = {
            result: self.metrics.registry.get_sample_value("placement_webhook_events_total", {"result": result}) or 0.0
            for result in EVENT_RESULTS
        }
        return {result: count for result, count in found.items() if count}


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]:
    """Runs a scene and returns its log."""

    def run(scene: Callable[[Scene], Awaitable[None]]) -> list[Any]:
        async def played() -> None:
            async with fake_events_api() as api:
                await scene(Scene(api, tmp_path))

        with structlog.testing.capture_logs() as logs:
            asyncio.run(played())
        return logs

    return run


Play = Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]


def pod_of(name: str, kind: str = "ReplicaSet") -> PodBuilder:
    return make_pod("").generate_name(f"{name}-").owner(kind, name).label("app", name)


def stored(number: int, owner: str = "web", created: str = "2026-01-01T00:00:01Z") -> dict[str, Any]:
    pod = pod_of(owner).obj()["metadata"] | {
        "name": f"{owner}-{number}",
        "uid": f"uid-of-{owner}-{number}",
        "creationTimestamp": created,
    }
    return {"metadata": pod}


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


@pytest.mark.parametrize("pods", [5, 6])
def test_many_pods_of_an_owner_count_on_the_owner(play: Play, pods: int) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(number) for number in range(pods)]
        for _ in range(pods):
            scene.report(pod_of("web"), WAITING)
        await scene.after(1)
        on_pods = {(f"web-{number}", "PlacementWaiting"): 1 for number in range(pods)}
        assert scene.api.counts() == (on_pods if pods == 5 else {("web", "PlacementWaiting"): 6})

    play(scene)


def test_pods_of_an_owner_that_come_one_by_one_count_on_the_owner_after_the_fifth(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for number in range(8):
            created = f"2026-01-01T00:00:{1 + 2 * number:02}Z"
            scene.api.pods = [*scene.api.pods, stored(number, created=created)]
            scene.report(pod_of("web"), WAITING)
            await scene.after(2)
        on_pods = {(f"web-{number}", "PlacementWaiting"): 1 for number in range(5)}
        assert scene.api.counts() == {**on_pods, ("web", "PlacementWaiting"): 3}

    play(scene)


def test_missing_scheduler_is_on_the_first_pods_and_on_the_owner(play: Play) -> None:
    missing = Report("PlacementSchedulerMissing", "scheduler volcano: no sign that it runs: no Lease")

    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(number) for number in range(2)]
        for _ in range(2):
            scene.report(pod_of("web"), missing)
        await scene.after(1)
        assert scene.api.counts() == {
            ("web-0", "PlacementSchedulerMissing"): 1,
            ("web-1", "PlacementSchedulerMissing"): 1,
            ("web", "PlacementSchedulerMissing"): 2,
        }

    play(scene)


def test_pods_with_more_metadata_than_is_read_count_on_the_owner(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(number) for number in range(40)]
        for pod in scene.api.pods:
            pod["metadata"]["annotations"] = {"a": "x" * 100_000}
        scene.report(pod_of("web"), WAITING)
        await scene.after(1)
        assert scene.api.counts() == {("web", "PlacementWaiting"): 1}
        assert scene.results() == {"written": 1}

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


def test_without_the_right_there_is_one_line_in_the_log(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures, scene.api.message = [(403, "")] * 3, LACKS_RIGHT
        run = asyncio.create_task(scene.recorder.run())
        for number in range(3):
            scene.report(pod_of(f"web-{number}", "Job"), DENIED)
            await until(lambda: scene.recorder.is_idle)
        run.cancel()
        assert scene.results() == {"failed": 3}

    (log,) = play(scene)
    assert log["event"] == "events cannot be written"
    assert "403" in log["error"]


def test_connection_that_cannot_be_configured_is_logged_and_tried_again(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        kubeconfig = scene.api.kubeconfig(scene.folder)
        content = kubeconfig.read_text()
        kubeconfig.write_text("{}")
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        kubeconfig.write_text(content)
        await scene.after(60)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}

    logs = play(scene)
    assert [each["event"] for each in logs][:1] == ["events cannot be written"]


def test_api_server_that_fails_is_asked_again_after_a_pause(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(503, ""), (429, "")]
        scene.report(pod_of("web", "Job"), DENIED)
        asked = []
        for seconds in (1, 9, 1, 10):
            await scene.after(seconds)
            asked.append(len(scene.api.asked))
        assert asked == [1, 1, 2, 3]
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}
        assert scene.results() == {"written": 1}

    assert [log["event"] for log in play(scene)] == ["events cannot be written"] * 2


def test_event_is_given_up_after_three_failures(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(500, "")] * 10
        scene.report(pod_of("web", "Job"), DENIED)
        for _ in range(5):
            await scene.after(10)
        assert scene.results() == {"failed": 1}
        assert len(scene.api.asked) == 3

    play(scene)


def test_namespace_that_is_deleted_is_no_trouble(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(403, "NamespaceTerminating")]
        scene.report(pod_of("web", "Job"), DENIED, "leaving")
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        assert scene.results() == {"failed": 1, "written": 1}

    assert play(scene) == []


def test_admission_webhook_of_one_namespace_holds_up_no_other(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures, scene.api.message = [(403, ""), (403, "")], DENIED_BY_WEBHOOK
        for name in ("a", "b", "c"):
            scene.report(pod_of(name, "Job"), DENIED, f"team-{name}")
        await scene.after(1)
        assert scene.api.counts() == {("c", "PlacementDenied"): 1}
        assert scene.results() == {"failed": 2, "written": 1}

    assert [log["event"] for log in play(scene)] == ["events cannot be written"]


def test_rejected_event_holds_up_no_other_and_is_logged_once(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(422, ""), (422, "")]
        for name in ("a", "b", "c"):
            scene.report(pod_of(name, "Job"), DENIED)
        await scene.after(1)
        assert scene.api.counts() == {("c", "PlacementDenied"): 1}
        assert scene.results() == {"failed": 2, "written": 1}

    assert [log["event"] for log in play(scene)] == ["events cannot be written"]


def test_storm_of_owners_is_bounded_in_memory_and_in_requests(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for number in range(5000):
            scene.report(pod_of(f"web-{number}", "Job"), DENIED, f"team-{number % 40}")
        assert scene.recorder.waiting == MOST_ITEMS
        began = scene.clock.seconds
        await scene.after(1)
        seconds = scene.clock.seconds - began
        assert len(scene.api.asked) <= 25 + seconds + 1
        assert scene.results() == {"written": MOST_ITEMS, "dropped": 5000 - MOST_ITEMS}

    play(scene)


def test_event_on_a_known_object_is_written(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        policy = ObjectReference("placement.maip.mxsf.io/v1alpha1", "PlacementPolicy", "", "default", "1")
        scene.recorder.report_on(policy, Report("PolicyRejected", "this generation is not put into force: spec"))
        await scene.after(1)
        assert scene.api.counts() == {("default", "PolicyRejected"): 1}

    play(scene)


def test_pod_of_a_second_round_replaces_its_report(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(make_pod("p"), WAITING)
        again = make_pod("p").annotate(POLICY.policy_annotation, "default@1")
        scene.report(again, None)
        assert scene.recorder.is_idle

    play(scene)


@pytest.mark.parametrize(
    ("pod", "request_fields"),
    [
        pytest.param(pod_of("web"), {"dryRun": True}, id="dry run"),
        pytest.param(pod_of("web"), {"namespace": "a/../b"}, id="no namespace"),
        pytest.param(make_pod("p"), {}, id="no owner"),
    ],
)
def test_denied_pod_without_an_object_gives_none(play: Play, pod: PodBuilder, request_fields: dict[str, Any]) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod, DENIED, **request_fields)
        assert scene.recorder.is_idle

    play(scene)


def test_what_waits_at_the_shutdown_is_written(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        scene.report(pod_of("web", "Job"), DENIED)
        scene.report(pod_of("late", "Job"), DENIED)
        await scene.recorder.drain(5)
        assert scene.api.counts() == {("web", "PlacementDenied"): 2, ("late", "PlacementDenied"): 1}

    play(scene)


def test_shutdown_writes_the_first_event(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.recorder.drain(5)
        assert scene.api.counts() == {("web", "PlacementDenied"): 1}

    play(scene)


def test_shutdown_waits_for_no_api_server_that_fails(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.failures = [(503, "")]
        scene.report(pod_of("web", "Job"), DENIED)
        await scene.after(1)
        asked = len(scene.api.asked)
        await scene.recorder.drain(5)
        assert len(scene.api.asked) == asked
        assert scene.results() == {"dropped": 1}

    play(scene)
