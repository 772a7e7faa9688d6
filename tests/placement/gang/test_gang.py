"""A gang fits if all of its pods fit together, counted one after the other."""

from dataclasses import replace
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import strategies_pods
from tests.oracles.strategies import clusters, pending_pods
from tests.placement.gang.gangs import (
    GANG,
    HOST,
    IN_A_RACK,
    WORKER,
    Object,
    affinity,
    asked,
    counted,
    gpu_node,
    gpus,
    on,
    running,
    snapshot_of,
    spread,
)
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.backends.references import Within
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import BudgetSpentError
from webhook.kube.names import KUEUE_TOPOLOGY
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.gang import gang_placement
from webhook.placement.gang.gang_count import Gang
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, place_pending

TAKEN = make_pod("other").gpu(3)


def test_message_says_how_many_fit_and_where_the_most_cards_are_free() -> None:
    placement = asked(WORKER, 9, on(gpus("a", 4), gpus("b", 4, TAKEN)))

    assert placement.message == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. 5 of 9 pods of gang train fit now; "
        "no more than 8 would fit on an empty cluster; largest free block: 4 nvidia.com/gpu on 1 node."
    )


def test_largest_free_block_is_of_the_resource_that_the_fewest_pods_find() -> None:
    worker = WORKER.requests(**{"nvidia.com/gpu": "1", "rdma/hca": "2"})
    capacity = {"nvidia.com/gpu": "8", "rdma/hca": "4"}

    assert asked(worker, 3, on(node("a", capacity=capacity))).message.endswith(
        "largest free block: 4 rdma/hca on 1 node."
    )


APART_BY_HOST = WORKER.affinity(affinity("podAntiAffinity", HOST))
APART_BY_RACK = WORKER.affinity(affinity("podAntiAffinity", "rack"))
OVER_RACKS = WORKER.spec(topologySpreadConstraints=[spread("rack")])


@pytest.mark.parametrize(
    ("pod", "size", "expected"),
    [
        (APART_BY_HOST, 3, ("Feasible", 3, 0)),
        (APART_BY_HOST, 4, ("Infeasible", 3, 0)),
        (APART_BY_RACK, 2, ("Feasible", 2, 0)),
        (APART_BY_RACK, 3, ("Infeasible", 2, 0)),
        (IN_A_RACK.node_selector("rack", "1"), 8, ("Feasible", 8, 0)),
        (IN_A_RACK.node_selector("rack", "1"), 9, ("Infeasible", 8, 0)),
        (IN_A_RACK.node_selector("rack", "2"), 5, ("Infeasible", 4, 0)),
        # Rack 2 takes four, so rack 1 takes five.
        (OVER_RACKS, 9, ("Feasible", 9, 0)),
        (OVER_RACKS, 10, ("Infeasible", 9, 0)),
        (WORKER.host_port(8080), 4, ("Infeasible", 3, 0)),
    ],
    ids=lambda value: "" if isinstance(value, PodBuilder) else str(value),
)
def test_pods_of_a_gang_keep_the_distance_that_they_ask_for(
    pod: PodBuilder, size: int, expected: tuple[str, int, int]
) -> None:
    cluster = on(gpus("a", 4, rack="1"), gpus("b", 4, rack="1"), gpus("c", 4, rack="2"))

    assert counted(asked(pod, size, cluster)) == expected


def test_gang_in_one_rack_waits_if_a_rack_could_hold_it() -> None:
    cluster = on(gpus("a", 4, rack="1"), gpus("b", 4, TAKEN, rack="1"), gpus("c", 4, TAKEN, rack="2"))

    assert counted(asked(IN_A_RACK, 8, cluster)) == ("Waiting", 5, 0)
    assert counted(asked(IN_A_RACK, 9, cluster)) == ("Infeasible", 5, 0)


def test_later_pods_of_a_gang_ask_for_the_rest() -> None:
    """Six cards: the gang of eight has three at its fourth pod, and five fit."""
    cluster = on(gpus("a", 4, *running(3)), gpus("b", 4, make_pod("other").gpu(2)))

    assert counted(asked(WORKER, 6, cluster)) == ("Feasible", 6, 3)
    assert counted(asked(WORKER, 8, cluster)) == ("Waiting", 6, 3)


@pytest.mark.parametrize("pod", [WORKER.namespace("team-b"), WORKER.annotate(GANG, "other")])
def test_gang_of_the_same_name_in_another_namespace_is_another_gang(pod: PodBuilder) -> None:
    assert counted(asked(WORKER, 4, on(gpus("a", 4, pod)))) == ("Waiting", 3, 0)


def test_more_pods_than_the_gang_needs_are_asked_for_one_at_a_time() -> None:
    assert counted(asked(WORKER, 2, on(gpus("a", 4, *running(3))))) == ("Feasible", 2, 2)
    assert counted(asked(WORKER, 2, on(gpus("a", 3, *running(3))))) == ("Waiting", 2, 2)


def test_running_members_need_no_more_room_without_the_pods_that_wait_before() -> None:
    """Of four pods two run, and another pod has the place of one of the others."""
    cluster = on(gpus("a", 4, *running(2)))
    other = WaitingPod.of(make_pod().gpu(1).obj()).running._replace(node_name="a")
    placement = asked(WORKER, 4, AssumedPods(cluster.base, {"other": AssumedPod(other, 0)}))
    assert (counted(placement), placement.waiting_before) == (("Waiting", 3, 2), 1)


def test_members_that_wait_with_room_count_and_other_pods_that_wait_are_named() -> None:
    cluster = on(gpus("a", 6))
    others = [
        (f"other-{number}", AssumedPod(each.running._replace(node_name="a"), 0))
        for number, each in enumerate([WaitingPod.of(make_pod().gpu(1).obj())] * 2)
    ]
    member = ("member", AssumedPod(WaitingPod.of(WORKER.obj()).running._replace(node_name="a"), 0))
    assumed = AssumedPods(cluster.base, dict([*others, member]))

    assert counted(asked(WORKER, 4, assumed)) == ("Feasible", 4, 1)
    placement = asked(WORKER, 6, assumed)
    assert (counted(placement), placement.waiting_before) == (("Waiting", 4, 1), 2)
    assert "all would fit without the 2 pods that wait before them" in placement.message
    assert asked(WORKER, 7, assumed).verdict == "Infeasible"


def test_pending_pods_keep_their_gang() -> None:
    objects = [gpu_node("a", 4), WORKER.obj(), make_pod("second").annotate(GANG, "train").gpu(1).obj()]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    pending = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed

    assert counted(asked(WORKER, 4, pending)) == ("Feasible", 4, 2)


def test_pod_of_a_gang_that_does_not_fit_is_bound_all_the_same_unless_its_scheduler_waits_for_the_gang() -> None:
    cluster = on(gpus("a", 4))

    alone = asked(WORKER, 5, cluster)
    whole = asked(WORKER, 5, cluster, least=5)

    assert (alone.verdict, alone.node, alone.binding.verdict, alone.binding.node) == (
        "Infeasible",
        None,
        "Feasible",
        "a",
    )
    assert whole.binding is whole
    assert [each.gang.starts_in_part for each in (alone, whole) if each.gang] == [True, False]


@pytest.mark.parametrize(("least", "starts"), [(4, True), (3, True), (5, False)])
def test_gang_starts_in_part_once_as_many_pods_fit_as_its_pod_group_needs(least: int, starts: bool) -> None:
    placement = asked(WORKER, 6, on(gpus("a", 4)), least=least)

    assert placement.gang is not None
    assert (placement.gang.starts_in_part, placement.binding.node) == (starts, "a" if starts else None)


def test_gang_without_a_first_place_does_not_start_in_part() -> None:
    placement = asked(WORKER, 4, on(gpus("a", 4, *[make_pod().gpu(1)] * 4)))

    assert counted(placement) == ("Waiting", 0, 0)
    assert placement.gang is not None
    assert not placement.gang.starts_in_part


@pytest.mark.parametrize("fault", ["cordoned", "not ready"])
def test_gang_that_nodes_out_of_service_could_hold_is_not_denied(fault: str) -> None:
    taints = ["node.kubernetes.io/not-ready:NoSchedule"] if fault == "not ready" else []
    away = node("b", taints=taints, unschedulable=fault == "cordoned", capacity={"nvidia.com/gpu": "4"})

    placement = asked(WORKER, 8, on(gpus("a", 4), away))

    assert (placement.verdict, placement.deny_exemption) == (
        "Infeasible",
        "nodes would do that are cordoned, not ready or not well",
    )
    assert asked(WORKER, 9, on(gpus("a", 4), away)).deny_exemption == ""


@pytest.mark.parametrize("pod", [WORKER, APART_BY_HOST])
def test_deadline_ends_the_count_and_keeps_what_is_known_of_the_pod(pod: PodBuilder) -> None:
    def spent() -> bool:
        raise BudgetSpentError(10)

    ended = asked(pod, 3, on(gpus("a", 4), gpus("b", 4)), expired=lambda: True)
    of_budget = asked(pod, 3, on(gpus("a", 4), gpus("b", 4)), expired=spent)

    assert (ended.verdict, ended.is_final, ended.binding.verdict) == ("Unknown", False, "Feasible")
    assert of_budget.verdict == "Unknown"


WORLDS = st.one_of(
    st.tuples(clusters(), pending_pods()).map(lambda each: ([*each[0][0]], [*each[0][1]], each[1])),
    st.tuples(strategies_pods.clusters(), strategies_pods.pending_pods()).map(
        lambda each: ([*each[0][0]], [*each[0][1], *each[0][2]], each[1])
    ),
)


@settings(max_examples=examples(60))
@given(world=WORLDS, size=st.integers(2, 7))
def test_verdict_on_a_gang_is_that_of_filling_the_cluster(
    world: tuple[list[Object], list[Object], Object], size: int
) -> None:
    nodes, others, pod = world
    for each in nodes:
        amounts = each["status"]["allocatable"]
        amounts["pods"] = min(amounts.get("pods", "0"), "4", key=int)
    assumed: AssumedPods[Any] = AssumedPods(snapshot_of(nodes, others), {})

    found = asked(pod, size, assumed)
    now = place_replicas(Scheduler(), assumed.base, repeat(pod), size)
    empty = place_replicas(Scheduler(), emptied(assumed.base), repeat(pod), size)

    if not now.is_complete or now.first.verdict in ("Unknown", "Infeasible"):
        assert found.verdict == now.placement.verdict
        return
    assert counted(found)[1:] == (now.placed, 0)
    assert (found.verdict == "Feasible") == (now.placed == size)
    if empty.placed == size:
        assert found.verdict != "Infeasible"


def emptied(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` with nodes on which no pod runs."""
    return snapshot.with_nodes([NodeInfo.of(info.node) for info in snapshot.nodes], 1)


@pytest.mark.parametrize("within", [None, Within("rack")])
@pytest.mark.parametrize("size", [2, 4, 9, 99])
def test_gated_gang_is_not_counted(size: int, within: Within | None) -> None:
    """Its controller removes the gates when there is room, on nodes that it may add."""
    gated = WORKER.spec(schedulingGates=[{"name": "example.com/quota"}])
    cluster = on(gpus("a", 4, rack="1"), gpus("b", 4, *running(2), rack="1"))

    placement = asked(gated, size, cluster, within=within)

    assert placement.verdict != "Infeasible"
    assert placement.gang is not None
    assert (placement.gang.fit, placement.gang.placed, placement.gang.is_complete) == (2, 2, False)


@pytest.mark.parametrize(
    ("unlabelled", "exemption"),
    [
        pytest.param(0, "", id="no node"),
        pytest.param(3, "", id="too few cards"),
        pytest.param(4, "nodes can get the label rack later", id="exactly the missing cards"),
        pytest.param(9, "nodes can get the label rack later", id="more"),
    ],
)
def test_gang_that_fits_once_nodes_get_the_label_of_a_domain_is_not_denied(unlabelled: int, exemption: str) -> None:
    cluster = on(gpus("a", 4, rack="1"), gpus("b", 2, rack="2"), gpus("bare", unlabelled))

    placement = asked(WORKER, 8, cluster, within=Within("rack"))

    assert (placement.verdict, placement.deny_exemption) == ("Infeasible", exemption)


@pytest.mark.parametrize(("cards", "verdict"), [(1, "Feasible"), (9, "Infeasible")])
def test_suggestions_for_one_pod_stay_when_domains_are_counted_anew(cards: int, verdict: str) -> None:
    pod = WaitingPod.of(WORKER.gpu(cards).annotate(KUEUE_TOPOLOGY, "rack").obj())
    cluster = on(*(gpus(name, 4, rack=name) for name in "ab"))
    own = replace(Scheduler().answer(pod.signature.anywhere(), cluster.base), suggestions=("ask for less",))
    gang = Gang(GangKey("default", GANG, "train"), 3, within=Within("rack"))

    placement = gang_placement(Scheduler(), gang, pod, own, cluster)

    assert (placement.verdict, placement.suggestions) == (verdict, ("ask for less",))


@pytest.mark.parametrize(
    ("size", "verdict", "waiting_before"),
    [
        pytest.param(1, "Waiting", 1, id="one pod would fit without the pod that waits"),
        pytest.param(2, "Waiting", 0, id="two would not, because of the pod that runs"),
        pytest.param(3, "Infeasible", 0, id="three never do"),
    ],
)
def test_pods_that_wait_before_are_the_reason_only_if_the_gang_would_fit_without_them(
    size: int, verdict: str, waiting_before: int
) -> None:
    """The pod by itself would fit without them in each case."""
    base = Snapshot.of([gpus("a", 4, make_pod("runs").gpu(4)), gpus("b", 4)])
    waits = RunningPod.of(make_pod("waits").gpu(4).obj()).assumed_on("b", 0)

    placement = asked(WORKER.gpu(4), size, AssumedPods(base, {1: AssumedPod(waits, 0)}))

    assert (placement.verdict, placement.waiting_before) == (verdict, waiting_before)
