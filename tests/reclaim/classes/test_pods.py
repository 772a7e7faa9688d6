"""Single pods that hold cards and do not use them, and those that only look like it."""

import pytest

from tests.reclaim.reports import names, objects_of, report
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import CARD, HOUR, ago, card_pod, gpu_node, running, waiting
from tests.support.objects.held import NOW_SECONDS as NOW

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
MESSAGE = "Back-off pulling image"


def test_a_pod_past_its_end_is_reported_since_then() -> None:
    (row,) = report(gpu_node("n1"), card_pod("stuck", "n1", 4).deletion(ago(HOUR)))

    assert (row.reason, row.cards, row.nodes, row.is_down) == ("terminating", {CARD: 4}, ("n1",), False)
    assert (row.since.seconds, row.since.is_least) == (NOW - HOUR, False)
    assert row.remedy.text == "kubelet of n1; look for a hung process"
    ((command, condition),) = row.remedy.commands.items()
    assert command == "delete pod stuck -n team-a --grace-period=0 --force"
    assert condition.startswith("no process of the pod runs on n1")


def test_a_finalizer_keeps_the_object_of_a_pod_that_its_kubelet_does_not_end() -> None:
    pod = card_pod("stuck", "n1").deletion(ago(HOUR)).obj()
    pod["metadata"]["finalizers"] = ["example.com/save"]

    (row,) = report(gpu_node("n1"), pod)

    assert row.remedy.text == "kubelet of n1; look for a hung process, then finalizer example.com/save"
    assert [each.partition(" -n team-a ")[::2] for each in row.remedy.commands] == [
        ("delete pod stuck", "--grace-period=0 --force"),
        ("patch pod stuck", """--type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"""),
    ]


def test_a_pod_past_its_end_on_a_node_that_is_down_needs_the_out_of_service_taint() -> None:
    (row,) = report(gpu_node("n1", down_for=2 * HOUR), card_pod("train", "n1").deletion(ago(HOUR)))

    assert (row.reason, row.is_down) == ("terminating", True)
    assert row.why == "Terminating past its end; node n1 is down"
    ((command, condition),) = row.remedy.commands.items()
    assert command == f"taint nodes n1 {OUT_OF_SERVICE}"
    assert condition.startswith("n1 is off")


def test_the_out_of_service_taint_ends_no_pod_of_a_node_that_is_up() -> None:
    node = gpu_node("n1", taints=(OUT_OF_SERVICE,))

    (row,) = report(node, card_pod("train", "n1").deletion(ago(HOUR)))

    assert row.remedy.text == "kubelet of n1; look for a hung process"
    assert [*row.remedy.commands] == ["delete pod train -n team-a --grace-period=0 --force"]


def test_the_pod_garbage_collector_ends_pods_of_a_node_out_of_service() -> None:
    node = gpu_node("n1", down_for=2 * HOUR, taints=(OUT_OF_SERVICE,))

    (row,) = report(node, card_pod("train", "n1").deletion(ago(HOUR)))

    assert row.remedy == ("the pod garbage collector, within 20 s", {})


def test_of_two_containers_that_do_not_start_the_one_with_cards_counts() -> None:
    pod = waiting(running(card_pod("train", "n1").container("logs"), HOUR), "ErrImageNeverPull", HOUR, message="theirs")
    content = waiting(pod, "ErrImageNeverPull", HOUR, container="logs", message="of the sidecar").obj()
    content["status"]["containerStatuses"].reverse()

    assert report(gpu_node("n1"), content)[0].why == "ErrImageNeverPull: theirs"


def test_a_pod_on_a_node_that_is_down_is_held_since_the_node_is() -> None:
    pod = card_pod("train", "n1").toleration("node.kubernetes.io/not-ready", operator="Exists", seconds=300)

    (row,) = report(gpu_node("n1", down_for=HOUR), pod)

    assert (row.reason, row.is_down, row.since.seconds) == ("node-down", True, NOW - HOUR)
    assert row.remedy.text == "node n1 back, or taint eviction after 300 s, then as Terminating"


def test_a_pod_that_tolerates_the_taint_stays() -> None:
    pod = card_pod("train", "n1").toleration(operator="Exists")

    (row,) = report(gpu_node("n1", down_for=HOUR), pod)

    assert row.remedy.text == "node n1 back: the pod tolerates its taint without an end"


def test_only_the_tolerations_of_the_taints_of_the_node_count() -> None:
    pod = card_pod("train", "n1").toleration("node.kubernetes.io/not-ready", operator="Exists", seconds=3600)

    (row,) = report(
        gpu_node("n1", down_for=HOUR),
        pod.toleration("node.kubernetes.io/unreachable", operator="Exists", seconds=300),
    )

    assert row.remedy.text == "node n1 back, or taint eviction after 3600 s, then as Terminating"


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
ENDLESS = "node n1 back: the pod tolerates its taint without an end"


def after(seconds: int) -> str:
    return f"node n1 back, or taint eviction after {seconds} s, then as Terminating"


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], after(0), id="none"),
        pytest.param([(NOT_READY, 300), (UNREACHABLE, 60)], after(60), id="the shortest of two taints"),
        pytest.param([(UNREACHABLE, 60), (NOT_READY, 300)], after(60), id="the shortest, first"),
        pytest.param([(NOT_READY, None), (UNREACHABLE, 60)], after(60), id="one without an end"),
        pytest.param([(NOT_READY, None), (UNREACHABLE, None)], ENDLESS, id="both without an end"),
        pytest.param([(NOT_READY, 300)], after(0), id="only one of two taints"),
        pytest.param([("", 3600)], after(3600), id="of every key"),
        pytest.param([("", 3600), (NOT_READY, 60), (UNREACHABLE, 60)], after(3600), id="the first of a taint"),
        pytest.param([(NOT_READY, None), ("", 60), (UNREACHABLE, 30)], after(60), id="the first of each taint"),
        pytest.param([("", -5)], after(0), id="negative"),
        pytest.param([("other", 30), ("", 90)], after(90), id="of another key"),
    ],
)
def test_the_taint_eviction_is_by_the_first_toleration_of_each_taint_and_the_shortest_of_these(
    tolerations: list[tuple[str, int | None]], expected: str
) -> None:
    node, pod = gpu_node("n1", down_for=HOUR, taints=(f"{UNREACHABLE}:NoExecute",)), card_pod("train", "n1")
    for key, seconds in tolerations:
        pod = pod.toleration(key, operator="Exists", effect="NoExecute", seconds=seconds)

    assert report(node, pod)[0].remedy.text == expected


@pytest.mark.parametrize(
    ("toleration", "seconds"),
    [
        ({"operator": "Equal", "value": "", "effect": ""}, 90),
        ({"operator": "Equal", "value": "other", "effect": ""}, 0),
        ({"operator": "Exists", "effect": "NoSchedule"}, 0),
    ],
)
def test_a_toleration_that_does_not_tolerate_the_taint_does_not_count(toleration: dict[str, str], seconds: int) -> None:
    content = card_pod("train", "n1").obj()
    content["spec"]["tolerations"] = [{"key": NOT_READY, "tolerationSeconds": 90, **toleration}]

    assert report(gpu_node("n1", down_for=HOUR), content)[0].remedy.text == after(seconds)


def test_another_taint_that_the_pod_does_not_tolerate_evicts_it_at_once() -> None:
    node = gpu_node("n1", down_for=HOUR, taints=("maintenance:NoExecute",))
    pod = card_pod("train", "n1").toleration(NOT_READY, operator="Exists", seconds=300)

    assert report(node, pod)[0].remedy.text == after(0)


def test_no_pod_is_evicted_from_a_node_without_the_taint_that_evicts() -> None:
    """If all nodes are down, the node lifecycle controller leaves only the taints that keep new pods away."""
    node = gpu_node("n1", down_for=HOUR)
    node["spec"]["taints"] = [each for each in node["spec"]["taints"] if each["effect"] != "NoExecute"]

    (row,) = report(node, card_pod("train", "n1"))

    assert row.reason == "node-down"
    assert row.remedy.text == "node n1 back: it has no NoExecute taint that evicts the pod"


def test_a_node_that_is_down_by_its_taint_alone_has_no_begin() -> None:
    node = gpu_node("n1", taints=("node.kubernetes.io/unreachable:NoExecute",))
    node["status"]["conditions"] = []

    (row,) = report(node, card_pod("train", "n1"))

    assert (row.reason, row.since.is_known) == ("node-down", False)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("ImagePullBackOff", "image-pull"),
        ("InvalidImageName", "image-pull"),
        ("CreateContainerConfigError", "config-error"),
        ("CrashLoopBackOff", "crash-loop"),
        ("RunContainerError", "crash-loop"),
    ],
)
def test_a_container_that_does_not_start_has_the_class_of_its_reason(reason: str, expected: str) -> None:
    (row,) = report(gpu_node("n1"), waiting(card_pod("srv", "n1"), reason, 3 * HOUR, message=MESSAGE))

    assert (row.reason, row.since) == (expected, (NOW - 3 * HOUR, True, True))
    assert row.why == f"{reason}: {'7 restarts' if reason == 'CrashLoopBackOff' else MESSAGE}"
    assert (row.remedy.text, row.returns) == ("delete Pod srv", False)


def test_what_frees_the_cards_is_the_deployment_of_a_replica_set() -> None:
    pod = card_pod("srv-5d9-x", "n1").label("pod-template-hash", "5d9").owner("ReplicaSet", "srv-5d9")

    (row,) = report(gpu_node("n1"), waiting(pod, "ImagePullBackOff", HOUR))

    assert (row.remedy.text, row.returns) == ("scale Deployment srv to 0", True)
    assert [*row.remedy.commands] == ["scale deployment srv -n team-a --replicas=0"]


@pytest.mark.parametrize(
    ("kind", "api_version", "command"),
    [
        ("Job", "batch/v1", "delete job train -n team-a"),
        ("Job", "batch.volcano.sh/v1alpha1", "delete job.batch.volcano.sh train -n team-a"),
        ("StatefulSet", "apps.kruise.io/v1beta1", "delete statefulset.apps.kruise.io train -n team-a"),
        ("x; id #", "example.com/v1", "delete 'x; id #.example.com' train -n team-a"),
    ],
)
def test_a_command_is_about_the_owner_of_this_api_group(kind: str, api_version: str, command: str) -> None:
    pod = card_pod("train-0", "n1").owner(kind, "train", api_version=api_version)

    (row,) = report(gpu_node("n1"), waiting(pod, "ImagePullBackOff", HOUR))

    assert [*row.remedy.commands] == [command]


@pytest.mark.parametrize(("ran", "rows"), [(10 * HOUR, []), (600, []), (599, [("crash-loop", "srv")])])
def test_a_container_that_ran_for_long_has_not_been_unused_before_it_ended(
    ran: int, rows: list[tuple[str, str]]
) -> None:
    pod = waiting(card_pod("srv", "n1", since=11 * HOUR), "CrashLoopBackOff", 11 * HOUR).obj()
    ended = {"exitCode": 1, "startedAt": ago(10 + ran), "finishedAt": ago(10)}
    pod["status"]["containerStatuses"][0]["lastState"] = {"terminated": ended}

    assert names(report(gpu_node("n1"), pod)) == rows


def test_a_crash_loop_began_before_the_back_offs_that_its_message_shows() -> None:
    """A container that runs for a moment is ready at each start, so no time in the status is older than a back-off."""
    pod = waiting(card_pod("srv", "n1", since=HOUR), "CrashLoopBackOff", 120).obj()
    (status,) = pod["status"]["containerStatuses"]
    status["lastState"] = {"terminated": {"exitCode": 1, "startedAt": ago(122), "finishedAt": ago(120)}}
    status["state"]["waiting"]["message"] = "back-off 5m0s restarting failed container=main pod=srv_team-a(u1)"

    (row,) = report(gpu_node("n1"), pod)

    assert row.since == (NOW - 120 - 310, True, True)


def test_a_pull_that_has_failed_for_the_first_time_has_no_known_begin() -> None:
    (row,) = report(gpu_node("n1"), waiting(card_pod("srv", "n1"), "ErrImagePull", HOUR))

    assert (row.reason, row.since.is_known) == ("image-pull", False)


def test_a_sidecar_that_does_not_start_says_nothing_of_the_container_with_cards() -> None:
    pod = card_pod("big", "n1").obj()
    pod["spec"]["containers"].append({"name": "proxy", "image": "proxy"})
    creating, failing = ({"waiting": {"reason": each}} for each in ("ContainerCreating", "ImagePullBackOff"))
    pod["status"]["containerStatuses"] = [{"name": "main", "state": creating}, {"name": "proxy", "state": failing}]

    assert report(gpu_node("n1"), pod) == []


def test_a_node_that_reports_again_is_not_down_while_its_taint_is_there() -> None:
    back = gpu_node("n1", taints=("node.kubernetes.io/not-ready:NoExecute",))

    assert report(back, card_pod("train", "n1")) == []


def test_fields_of_a_wrong_type_are_passed_over() -> None:
    pod = waiting(card_pod("srv", "n1"), "ImagePullBackOff", HOUR).obj()
    pod["status"]["ephemeralContainerStatuses"] = ["x", {"state": "x"}]
    pod["spec"]["tolerations"] = []
    ended = {"apiVersion": "v1", "kind": "Pod", "spec": card_pod("gone", "n1").obj()["spec"]}
    objects = objects_of([gpu_node("n1")])

    for each in (pod, ended, ended | {"metadata": "x"}, ended | {"metadata": {"labels": ["x"]}}):
        objects.take(each)
    assert (len(objects.pods), objects.ended) == (1, {})
    assert [each.is_exempt for each in objects.holding()] == [True]


def test_a_container_that_never_ran_waits_since_the_pod_started() -> None:
    pod = waiting(card_pod("srv", "n1", since=2 * HOUR), "ImagePullBackOff", HOUR)

    (row,) = report(gpu_node("n1"), pod.status(conditions=[]))

    assert row.since == (NOW - 2 * HOUR, True, True)


def test_a_crash_loop_without_times_has_no_known_begin() -> None:
    status = waiting(card_pod("srv", "n1"), "CrashLoopBackOff", HOUR).obj()["status"]
    del status["containerStatuses"][0]["lastState"]

    (row,) = report(gpu_node("n1"), card_pod("srv", "n1").status(**{**status, "conditions": []}))

    assert not row.since.is_known


def test_an_init_container_that_does_not_start_holds_the_cards() -> None:
    pod = card_pod("srv", "n1").init_container("setup").obj()
    pod["status"]["containerStatuses"][0] |= {"state": {"waiting": {"reason": "PodInitializing"}}, "ready": False}
    pod["status"]["initContainerStatuses"] = [{"name": "setup", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]

    assert names(report(gpu_node("n1"), pod)) == [("image-pull", "srv")]


def _sidecar_crashes() -> PodBuilder:
    pod = running(card_pod("srv", "n1").container("logs"), 6 * HOUR)
    return waiting(pod, "CrashLoopBackOff", 3 * HOUR, container="logs")


def _debugged() -> PodBuilder:
    pod = waiting(card_pod("srv", "n1"), "CrashLoopBackOff", 3 * HOUR)
    return pod.status(ephemeralContainerStatuses=[{"name": "debugger", "state": {"running": {"startedAt": ago(60)}}}])


def _one_of_two_crashes() -> PodBuilder:
    pod = card_pod("srv", "n1").container("draft").obj()
    pod["spec"]["containers"][1]["resources"] = {"limits": {CARD: "1"}}
    return waiting(running(PodBuilder(pod), 6 * HOUR), "CrashLoopBackOff", 3 * HOUR, container="draft")


def _native_sidecar_crashes() -> PodBuilder:
    status = {"name": "proxy", "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    pod = card_pod("srv", "n1").init_container("proxy")
    return pod.status(**{**pod.obj()["status"], "initContainerStatuses": [status]})


CRASHING = waiting(card_pod("srv", "n1"), "CrashLoopBackOff", 3 * HOUR)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(card_pod("srv", "n1"), id="runs"),
        pytest.param(card_pod("srv", "n1").deletion(ago(-HOUR)), id="has a long grace period"),
        pytest.param(card_pod("srv", "n1").deletion(ago(30)), id="is being killed"),
        pytest.param(waiting(card_pod("srv", "n1"), "ContainerCreating", 3 * HOUR), id="pulls a large image"),
        pytest.param(waiting(card_pod("srv", "n1"), "ImagePullBackOff", 60), id="waits for a minute"),
        pytest.param(CRASHING.owner("Job", "train", api_version="batch/v1"), id="is restarted by a Job"),
        pytest.param(CRASHING.owner("DaemonSet", "agent"), id="is of a DaemonSet"),
        pytest.param(CRASHING.owner("Node", "n1", api_version="v1"), id="is static"),
        pytest.param(CRASHING.annotate("kubernetes.io/config.mirror", "x"), id="is a mirror pod"),
        pytest.param(CRASHING.deletion(ago(-HOUR)), id="crashes within a long grace period"),
        pytest.param(_sidecar_crashes(), id="has a sidecar that crashes"),
        pytest.param(_native_sidecar_crashes(), id="has a sidecar among its init containers that crashes"),
        pytest.param(_one_of_two_crashes(), id="has two containers with cards, and one crashes"),
        pytest.param(_debugged(), id="is debugged"),
        pytest.param(
            waiting(
                make_pod("web").node_name("n1").status(containerStatuses=[{"name": "main"}], conditions=[]),
                "CrashLoopBackOff",
                HOUR,
            ),
            id="has no card",
        ),
    ],
)
def test_a_pod_is_not_reported_that(pod: PodBuilder) -> None:
    assert report(gpu_node("n1"), pod) == []


def test_a_node_that_is_down_for_seconds_is_not_reported() -> None:
    assert report(gpu_node("n1", down_for=20), card_pod("srv", "n1")) == []
    assert names(report(gpu_node("n1", down_for=20), card_pod("srv", "n1"), older_than=10)) == [("node-down", "srv")]
