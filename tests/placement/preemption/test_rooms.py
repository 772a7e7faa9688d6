"""Which pods of a node stay beside the pod that preempts: by places, amounts and host ports."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, preempting, running, victims


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param(3, ["x"], id="one place is missing"),
        pytest.param(2, ["y", "x"], id="two are missing"),
        pytest.param(1, ["z", "y", "x"], id="three are missing"),
        pytest.param(0, [], id="no end of a pod is enough"),
    ],
)
def test_as_many_pods_are_evicted_as_places_are_missing(allowed: int, expected: list[str]) -> None:
    pods = running("z", 3), running("x", 1), running("y", 2)
    assert victims(make_pod(), node("n", *pods, capacity=ROOM | {"pods": str(allowed)})) == expected


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        pytest.param(3, ["x"], id="one is missing"),
        pytest.param(5, ["y"], id="the important pod is kept only if it fits"),
        pytest.param(8, ["y", "x"], id="all"),
        pytest.param(9, [], id="more than the node has"),
    ],
)
def test_the_most_important_pods_stay_that_fit_beside_the_pod(cards: int, expected: list[str]) -> None:
    pods = running("y", 2, cards=4), running("x", 1, cards=2), running("idle", 3)
    assert victims(make_pod().gpu(cards), node("n", *pods, capacity=ROOM)) == expected


def test_a_pod_that_a_filter_keeps_away_takes_no_room_from_those_after_it() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    pending = (
        make_pod().gpu(2).affinity({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    )
    pods = running("avoided", 2, cards=6).label("app", "web"), running("beside", 1, cards=2)
    assert victims(pending, node("n", *pods, capacity=ROOM, labels={"kubernetes.io/hostname": "n"})) == ["avoided"]


def test_pods_of_no_lower_priority_stay() -> None:
    pods = running("same", 100, cards=4), running("higher", 101, cards=2), running("lower", 99, cards=2)
    info = node("n", *pods, capacity=ROOM)
    assert victims(make_pod().gpu(2), info) == ["lower"]
    assert victims(make_pod().gpu(3), info) == []


def test_every_amount_that_no_eviction_frees_is_a_reason_of_the_node_and_of_other_filters_only_the_first() -> None:
    """As in kube-scheduler: NodeResourcesFit names all amounts, and a node that it rejects meets no later filter."""
    pods = running("high", 200, 1), running("low", 1)
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    web = running("web", 200).label("app", "web")
    pending = make_pod().gpu(2).gpu(1, "rdma/hca")
    pending = pending.affinity({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    capacity = ROOM | {"nvidia.com/gpu": "2", "rdma/hca": "1"}
    nodes = [
        node("both", *pods, running("hca", 200).gpu(1, "rdma/hca"), web, capacity=capacity),
        node("one", *pods, web, capacity=capacity, labels={"kubernetes.io/hostname": "one"}),
        node("web", running("low", 1), web, capacity=capacity, labels={"kubernetes.io/hostname": "web"}),
    ]
    assert preempting(pending, *nodes).message == (
        "preemption: 0/3 nodes are available: 1 Insufficient rdma/hca, "
        "1 node(s) didn't match pod anti-affinity rules, 2 Insufficient nvidia.com/gpu."
    )


def test_the_pod_that_takes_the_port_is_evicted_and_no_other() -> None:
    pods = running("a"), running("web").host_port(80).host_port(443), running("z").host_port(81)
    info = node("n", *pods, capacity=ROOM)
    assert victims(make_pod().host_port(80), info) == ["web"]
    assert sorted(victims(make_pod().host_port(81).host_port(443), info)) == ["web", "z"]
