"""Verdicts, messages and scores over a few nodes."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.placement.ranking.small_clusters import place
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.placement.profiles.profile import BINPACK, DEFAULT
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

_SMALL = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "3"}


def _verdict(pod: PodBuilder, *nodes: NodeInfo) -> str:
    return place(pod, *nodes).verdict


def _by_name(name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def test_pod_that_fits_now_is_feasible() -> None:
    placement = place(make_pod().gpu(8), node("a", capacity=_SMALL), node("b"), node("c", capacity=_SMALL))
    assert (placement.verdict, placement.total, placement.feasible) == ("Feasible", 3, 2)
    assert placement.message == "2/3 nodes are available."


@pytest.mark.parametrize(
    ("pod", "verdict", "message"),
    [
        (make_pod().gpu(8), "Feasible", "1/1 nodes are available."),
        (
            make_pod().gpu(8).spec(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
            "Feasible",
            "1/1 nodes are available.",
        ),
        (make_pod().gpu(9), "Infeasible", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        (
            make_pod().spec(schedulingGates=[{"name": "example.com/quota"}]),
            "Waiting",
            "Scheduling is blocked due to non-empty scheduling gates.",
        ),
    ],
)
def test_message_on_a_pod_of_a_queue_of_kueue_leaves_its_admission_open(
    pod: PodBuilder, verdict: str, message: str
) -> None:
    placement = place(pod.label("kueue.x-k8s.io/queue-name", "q"), node("a", capacity=_SMALL))
    assert (placement.verdict, placement.message) == (
        verdict,
        f"{message} Not predicted: when Kueue admits the pod, by quota.",
    )


@pytest.mark.parametrize(
    ("pod", "running"),
    [
        pytest.param(make_pod().gpu(8), make_pod().gpu(1), id="cards are taken"),
        pytest.param(make_pod().host_port(80), make_pod().host_port(80), id="a port is taken"),
    ],
)
def test_pod_that_would_fit_on_an_empty_node_waits(pod: PodBuilder, running: PodBuilder) -> None:
    assert _verdict(pod, node("a", running, capacity=_SMALL)) == "Waiting"


@pytest.mark.parametrize(
    ("nodes", "doubt"),
    [
        pytest.param(
            [node("a", unschedulable=True)], "1 node would do that is cordoned, not ready or not well", id="cordoned"
        ),
        pytest.param(
            [
                node(name, taints=[f"node.kubernetes.io/{state}:NoSchedule"])
                for name, state in (("a", "not-ready"), ("b", "disk-pressure"))
            ],
            "2 nodes would do that are cordoned, not ready or not well",
            id="conditions",
        ),
        pytest.param(
            [node("a", unschedulable=True, taints=["use=x:NoSchedule"]), node("b", capacity={"pods": "0"})],
            "",
            id="cordoned, and more against it",
        ),
    ],
)
def test_no_denial_rests_on_a_state_of_nodes_that_passes(nodes: list[NodeInfo], doubt: str) -> None:
    placement = place(make_pod(), *nodes)
    assert (placement.verdict, placement.deny_exemption) == ("Infeasible", doubt)


def test_pod_waits_where_a_node_is_full_of_pods() -> None:
    assert _verdict(make_pod(), node("a", *[make_pod()] * 3, capacity=_SMALL)) == "Waiting"


@pytest.mark.parametrize(
    ("pod", "other"),
    [
        pytest.param(make_pod().gpu(9), node("a", make_pod(), capacity=_SMALL), id="no node is that big"),
        pytest.param(make_pod(), node("a", taints=["use=x:NoSchedule"]), id="taints do not go away"),
        pytest.param(make_pod(), node("a", capacity={"pods": "0"}), id="a node for no pods"),
        pytest.param(
            make_pod().gpu(8).node_selector("use", "training"),
            node("a", make_pod().gpu(8), capacity=_SMALL),
            id="neither full nor empty",
        ),
    ],
)
def test_pod_that_no_node_could_ever_take_is_infeasible(pod: PodBuilder, other: NodeInfo) -> None:
    assert _verdict(pod, other) == "Infeasible"


def test_cluster_without_nodes_is_infeasible_in_schedulers_words() -> None:
    assert place(make_pod()) == Placement("Infeasible", None, 0, 0, "no nodes available to schedule pods")


def test_message_counts_nodes_by_the_first_filter_that_rejects_them() -> None:
    placement = place(
        make_pod().requests(cpu="5").gpu(9).node_selector("use", "training"),
        node("cordoned", unschedulable=True, taints=["use=x:NoSchedule"]),
        node("tainted", taints=["use=x:NoSchedule"]),
        node("other", capacity=_SMALL),
        node("small", labels={"use": "training"}, capacity=_SMALL),
        node("large", labels={"use": "training"}, capacity={**_SMALL, "cpu": "8"}),
    )
    assert placement.message == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu."
    )


def test_parts_of_the_message_are_sorted_as_text() -> None:
    nodes = [node(f"t{index}", taints=["use=x:NoSchedule"]) for index in range(10)]
    placement = place(make_pod().gpu(1), *nodes, node("a"), node("b"))
    assert placement.message == (
        "0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu."
    )


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            make_pod().gpu(9).require_node(_by_name("a")),
            "0/2 nodes are available: "
            "1 Insufficient nvidia.com/gpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="the others are not looked at",
        ),
        pytest.param(
            make_pod().require_node(_by_name("nowhere")),
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="no such node",
        ),
        pytest.param(
            make_pod().require_node(
                {"matchFields": _by_name("a")["matchFields"] + _by_name("b")["matchFields"]},
            ),
            "0/2 nodes are available: pod affinity terms conflict.",
            id="two names at once",
        ),
    ],
)
def test_message_where_nodes_are_asked_for_by_name(pod: PodBuilder, message: str) -> None:
    placement = place(pod, node("a", capacity=_SMALL), node("b", capacity=_SMALL))
    assert (placement.verdict, placement.message) == ("Infeasible", message)


def test_single_feasible_node_is_taken_without_scoring() -> None:
    placement = place(make_pod().gpu(1), node("a"), node("b", capacity=_SMALL))
    assert placement.node == "b"
    assert placement.scores == {"b": {"total": 0}}


def test_of_equal_nodes_the_first_by_name_is_best() -> None:
    assert place(make_pod(), node("b"), node("c"), node("a")).node == "a"


def test_binpack_profile_prefers_the_fuller_node() -> None:
    snapshot = Snapshot.of([node("empty", capacity=_SMALL), node("used", make_pod().gpu(4), capacity=_SMALL)])
    pod = make_pod().requests(cpu="1", memory="2Gi").gpu(4).obj()
    assert Scheduler(DEFAULT).place(pod, snapshot).node == "empty"
    assert Scheduler(BINPACK).place(pod, snapshot).node == "used"


def _counting(calls: list[int], last: int) -> Callable[[], bool]:
    def expired() -> bool:
        calls.append(1)
        return len(calls) > last

    return expired


def test_check_is_given_up_between_any_two_steps() -> None:
    snapshot = Snapshot.of([node("a"), node("b")])
    pod = make_pod().requests(cpu="1").prefer_node(1, {}).obj()
    calls: list[int] = []
    assert Scheduler().place(pod, snapshot, _counting(calls, 1000)).verdict == "Feasible"
    # Before the filters and before the scores, and within the plugins that go through terms of the pod.
    assert len(calls) >= 3
    for last in range(len(calls)):
        framework = Scheduler()
        given_up = framework.place(pod, snapshot, _counting([], last))
        assert given_up == Placement.unknown("the deadline was near: not every plugin was asked")
        assert framework.place(pod, snapshot).verdict == "Feasible"


def test_pod_is_not_changed() -> None:
    pod = make_pod().requests(cpu="1").toleration(operator="Exists").require_node(_by_name("a"))
    raw = pod.obj()
    Scheduler().place(raw, Snapshot.of([node("a")]))
    assert raw == pod.obj()


def test_nodes_that_pass_are_those_of_the_present_state_of_a_snapshot_that_changes_in_place() -> None:
    shown, scheduler = WorkingSnapshot(Snapshot.of([node("a"), node("b")])), Scheduler()
    asked = make_pod().host_port(80)
    signature = PodSignature.of(asked.obj())
    scheduler.answer(signature, shown.snapshot)

    assert [*scheduler.feasible_rows(signature, shown.snapshot)] == [0, 1]
    shown.add(RunningPod.of(asked.node_name("a").obj()))
    assert [*scheduler.feasible_rows(signature, shown.snapshot)] == [1]
