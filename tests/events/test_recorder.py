"""Reports become Events off the request path: aggregated, bounded, tried again and given up, on a given clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.events.scene import POLICY, Scene, pod_of, stored
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.fake_events_api import DENIED_BY_WEBHOOK, LACKS_RIGHT
from tests.support.servers.live import until
from webhook.events.backlog import MOST_ITEMS, MOST_ITEMS_OF_NAMESPACE
from webhook.events.report import Report
from webhook.events.subject import ObjectReference
from webhook.watch.api_server import ApiServer, ClientConfig

DENIED = Report("PlacementDenied", "a pod is refused: no such type")
WAITING = Report("PlacementWaiting", "no node can take the pod now: 0/1 nodes are available: 1 Insufficient cpu.")
MISSING = Report("PlacementSchedulerMissing", "scheduler volcano: no sign that it runs: no Lease")
Play = Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]


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


def test_pods_of_an_owner_count_anew_after_two_minutes(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for number in range(6):
            if number == 5:
                scene.clock.seconds += 120
            scene.api.pods = [
                *scene.api.pods,
                stored(number, created=f"2026-01-01T00:0{number // 5 * 2}:{2 * number:02}Z"),
            ]
            scene.report(pod_of("web"), WAITING)
            await scene.after(2)
        assert scene.api.counts() == {(f"web-{number}", "PlacementWaiting"): 1 for number in range(6)}

    play(scene)


def test_missing_scheduler_is_on_the_first_pods_and_on_the_owner(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(number) for number in range(2)]
        for _ in range(2):
            scene.report(pod_of("web"), MISSING)
        await scene.after(1)
        assert scene.api.counts() == {
            ("web-0", "PlacementSchedulerMissing"): 1,
            ("web-1", "PlacementSchedulerMissing"): 1,
            ("web", "PlacementSchedulerMissing"): 2,
        }

    play(scene)


def test_pods_of_a_lookup_that_failed_count_once(play: Play) -> None:
    """They are looked up again, and do not use up the Events on pods of their owner twice."""

    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(number) for number in range(3)]
        scene.api.fails_on = "replicasets/web"
        for _ in range(3):
            scene.report(pod_of("web"), MISSING)
        await scene.after(1)
        assert scene.api.counts() == {}
        scene.api.fails_on = ""
        await scene.after(10)
        on_pods = {(f"web-{number}", "PlacementSchedulerMissing"): 1 for number in range(3)}
        assert scene.api.counts() == {**on_pods, ("web", "PlacementSchedulerMissing"): 3}

    play(scene)


def test_missing_scheduler_is_on_the_owner_once_a_pod_is_found(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web"), MISSING)
        await scene.after(1)
        assert (scene.api.counts(), scene.api.asked) == ({}, ["GET /api/v1/namespaces/team-a/pods"])
        scene.api.pods = [stored(0)]
        await scene.after(3)
        names = ("web-0", "web")
        assert scene.api.counts() == {(name, "PlacementSchedulerMissing"): 1 for name in names}

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


@pytest.mark.slow
def test_storm_of_owners_is_bounded_in_memory_and_in_requests(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        for number in range(2 * MOST_ITEMS):
            scene.report(pod_of(f"web-{number}", "Job"), DENIED, f"team-{number % 40}")
        assert scene.recorder.waiting == MOST_ITEMS
        began = scene.clock.seconds
        await scene.after(1)
        seconds = scene.clock.seconds - began
        assert len(scene.api.asked) <= 25 + seconds + 1
        assert scene.results() == {"written": MOST_ITEMS, "dropped": MOST_ITEMS}

    play(scene)


def test_event_on_a_known_object_is_written(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        policy = ObjectReference("placement.maip.mxsf.io/v1alpha1", "PlacementPolicy", "", "default", "1")
        scene.recorder.report_on(policy, Report("PolicyRejected", "this generation is not put into force: spec"))
        await scene.after(1)
        assert scene.api.counts() == {("default", "PolicyRejected"): 1}
        assert scene.api.asked == ["POST /api/v1/namespaces/default/events"]
        assert scene.results() == {"written": 1}

    play(scene)


@pytest.mark.parametrize("is_known", [False, True])
def test_each_report_without_room_in_the_backlog_counts_as_dropped(play: Play, is_known: bool) -> None:
    async def scene(scene: Scene) -> None:
        for number in range(MOST_ITEMS_OF_NAMESPACE + 2):
            if is_known:
                policy = ObjectReference("placement.maip.mxsf.io/v1alpha1", "PlacementPolicy", "", str(number), "1")
                scene.recorder.report_on(policy, DENIED)
            else:
                scene.report(pod_of(f"web-{number}", "Job"), DENIED)
        assert scene.recorder.waiting == MOST_ITEMS_OF_NAMESPACE
        assert scene.results() == {"dropped": 2}

    play(scene)


def test_pod_of_a_second_round_replaces_its_report(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(make_pod("p"), WAITING)
        again = make_pod("p").annotate(POLICY.policy_annotation, "default@1")
        scene.report(again, None)
        assert scene.recorder.is_idle

    play(scene)


def test_pod_without_a_problem_is_not_counted_while_others_wait(play: Play) -> None:
    async def scene(scene: Scene) -> None:
        scene.report(pod_of("web"), WAITING)
        for pod in (make_pod("q"), make_pod(""), pod_of("web")):
            scene.report(pod, None)
        assert (scene.recorder.waiting, scene.results()) == (1, {})

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
        assert scene.results() == ({} if request_fields.get("dryRun") else {"no_object": 1})

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


@pytest.mark.parametrize(
    ("report", "failures", "slept"),
    [
        pytest.param(DENIED, [], [1], id="a second for equal reports"),
        pytest.param(DENIED, [(503, "")], [1, 10], id="a failure"),
        pytest.param(WAITING, [], [1, 3, 10, 10, 10], id="a pod that is not stored"),
    ],
)
def test_recorder_sleeps_until_the_next_report_is_due(
    play: Play, report: Report, failures: list[tuple[int, str]], slept: list[float]
) -> None:
    """At most ten seconds at once: another report can be due before."""

    async def scene(scene: Scene) -> None:
        scene.api.failures = failures
        run = asyncio.create_task(scene.recorder.run())
        scene.report(pod_of("web", "Job"), report)
        await until(lambda: scene.recorder.is_idle and bool(scene.results()))
        run.cancel()
        assert [round(seconds, 3) for seconds in scene.slept] == slept

    play(scene)


def test_reports_that_wait_when_the_task_is_cancelled_in_a_write_are_written_at_the_shutdown(play: Play) -> None:
    """The task ends before the last Events are written."""

    async def scene(scene: Scene) -> None:
        scene.api.pods = [stored(0)]
        scene.report(pod_of("web"), WAITING)
        connect, is_connecting, gate = scene.recorder._connect, asyncio.Event(), asyncio.Event()

        @asynccontextmanager
        async def stalled() -> AsyncIterator[ApiServer]:
            is_connecting.set()
            await gate.wait()
            yield ApiServer(ClientConfig())

        scene.recorder._connect = stalled
        writing = asyncio.create_task(scene.after(1))
        await is_connecting.wait()
        states = [scene.recorder.is_idle]
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        scene.recorder._connect = connect

        await scene.recorder.drain(5)
        assert scene.api.counts() == {("web-0", "PlacementWaiting"): 1}
        assert [*states, scene.recorder.is_idle] == [False, True]
        assert scene.results() == {"written": 1}

    play(scene)
