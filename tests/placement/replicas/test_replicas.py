"""Replicas are placed one after the other, each beside the earlier ones."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.strategies import clusters
from tests.oracles.strategies_pods import pod_affinities, spread_constraints
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from tests.support.views import said
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.replicas.emptied_nodes import nodes_without_pods
from webhook.placement.replicas.replicas import Replicas, place_replicas
from webhook.placement.scheduler import PodSignature, Scheduler

Object = dict[str, Any]


def _placed(pod: PodBuilder, asked: int, *nodes: NodeInfo, **bounds: Any) -> Replicas:
    return place_replicas(Scheduler(), Snapshot.of(nodes), repeat(pod.obj(), max(1, asked)), asked, **bounds)


def _four(name: str, *running: PodBuilder) -> NodeInfo:
    return node(name, *running, capacity={"nvidia.com/gpu": "4"})


def test_replicas_use_what_the_earlier_ones_leave() -> None:
    found = _placed(make_pod().gpu(2), 8, _four("a"), _four("b", make_pod().gpu(2)))

    assert (found.placed, found.asked, found.is_complete) == (3, 8, True)
    assert found.nodes == {"a": 2, "b": 1}
    assert found.text == "3 of 8 replicas fit now"
    assert found.first.verdict == "Feasible"
    assert found.stopped is not None
    assert (found.stopped.verdict, found.stopped.message) == (
        "Waiting",
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    )
    assert found.placement is found.stopped


def test_room_of_earlier_replicas_is_not_free_on_nodes_without_their_running_pods() -> None:
    """They are only reserved: no other pod can have the room once the pods that run are gone."""
    found = _placed(make_pod("new").gpu(3), 2, _four("a", make_pod("runs").gpu(1)), _four("b", make_pod("full").gpu(4)))

    assert found.nodes == {"a": 1}
    assert found.snapshot.requested("nvidia.com/gpu").tolist() == [4, 4]
    assert [[pod.name for pod in info.pods] for info in found.snapshot.nodes] == [["runs", "new"], ["full"]]
    assert [pod.is_reserved for info in found.snapshot.nodes for pod in info.pods] == [False, True, False]
    assert found.snapshot.with_reserved_pods().requested("nvidia.com/gpu").tolist() == [3, 0]
    signature = PodSignature.of(make_pod().gpu(2).obj())
    assert nodes_without_pods(Scheduler(), signature, found.snapshot) == ("b",)


def test_all_replicas_fit() -> None:
    found = _placed(make_pod().gpu(2), 2, _four("a"))

    assert (found.placed, found.stopped, found.is_complete) == (2, None, True)
    assert found.placement is found.first
    assert found.text == "2 of 2 replicas fit now"


def test_no_replica_fits() -> None:
    found = _placed(make_pod().gpu(8), 3, _four("a"))

    assert (found.placed, found.nodes, found.is_complete) == (0, {}, True)
    assert found.stopped is found.first
    assert found.first.verdict == "Infeasible"
    assert found.text == "0 of 3 replicas fit now"


def test_a_single_replica_is_reported_in_the_singular() -> None:
    assert _placed(make_pod(), 1, _four("a")).text == "1 of 1 replica fits now"


def test_of_no_replicas_the_first_is_evaluated_all_the_same() -> None:
    found = _placed(make_pod(), 0, _four("a"))

    assert (found.placed, found.asked, found.first.verdict, found.is_complete) == (0, 0, "Feasible", True)


def test_the_count_ends_at_its_limit_with_a_lower_bound() -> None:
    found = _placed(make_pod(), 1_000_000, node("a", capacity={"pods": "1000"}), limit=20)

    assert (found.placed, found.stopped, found.is_complete) == (20, None, False)
    assert found.text == "at least 20 of 1000000 replicas fit now"


def test_the_count_ends_at_the_deadline_with_a_lower_bound() -> None:
    found_at: list[int] = []

    def expired() -> bool:
        found_at.append(0)
        return len(found_at) > 200

    found = _placed(make_pod(), 1_000_000, node("a", capacity={"pods": "100000"}), limit=100_000, expired=expired)

    assert 0 < found.placed < 200
    assert not found.is_complete
    assert found.stopped is not None
    assert found.stopped.verdict == "Unknown"


def test_pods_are_made_as_they_are_placed() -> None:
    made: list[int] = []

    def pods() -> Iterator[Object]:
        for index in range(2**31):
            made.append(index)
            yield make_pod(f"web-{index}").gpu(1).obj()

    found = place_replicas(Scheduler(), Snapshot.of([_four("a")]), pods(), 2**31 - 1)

    assert (found.placed, len(made)) == (4, 5)


def test_replicas_that_repel_each_other_take_a_node_each() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = (
        make_pod()
        .label("app", "web")
        .affinity({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    )

    assert _placed(apart, 5, *map(_four, "abc")).nodes == {"a": 1, "b": 1, "c": 1}


def test_devices_are_counted_for_one_replica_alone() -> None:
    """The snapshot does not show them as allocated to it."""
    pod = make_pod().requests(**{"deviceclass.resource.kubernetes.io/card": 1})
    capacity = {"deviceclass.resource.kubernetes.io/card": "4"}

    found = _placed(pod, 3, node("a", capacity=capacity), node("b", capacity=capacity))

    assert found.placed <= 1
    assert not (found.is_complete and found.stopped is None)


def test_a_following_set_is_placed_beside_the_first() -> None:
    scheduler, pods = Scheduler(), [make_pod().gpu(3).obj()]
    leaders = place_replicas(scheduler, Snapshot.of([_four("a")]), pods, 1)

    workers = place_replicas(scheduler, leaders.snapshot, pods, 1)

    assert (leaders.placed, workers.placed) == (1, 0)


@st.composite
def _pods(draw: st.DrawFn) -> Object:
    spec: Object = {}
    if affinity := draw(st.one_of(st.none(), pod_affinities)):
        spec["affinity"] = affinity
    if constraints := draw(st.lists(spread_constraints(), max_size=1)):
        spec["topologySpreadConstraints"] = constraints
    builder = make_pod().label("app", "web").namespace("default").requests(cpu="500m").spec(**spec)
    return builder.host_port(80).obj() if draw(st.booleans()) else builder.obj()


@pytest.mark.slow
@given(world=clusters(), pod=_pods())
def test_the_count_equals_one_on_snapshots_made_from_scratch(
    world: tuple[list[Object], list[Object]], pod: Object
) -> None:
    nodes, running = world
    nodes = [*nodes, make_node_object("z", labels={"zone": "a"}, capacity={"cpu": "2"})]
    asked = 4

    def snapshot(more: list[Object]) -> Snapshot:
        return snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running, *more))

    placed: list[Object] = []
    for index in range(asked):
        answer = Scheduler().place(pod, snapshot(placed))
        if answer.verdict != "Feasible":
            break
        bound = deepcopy(pod)
        bound["metadata"]["name"] = f"replica-{index}"
        bound["spec"]["nodeName"] = answer.node
        placed.append(bound)

    def replicas() -> Iterator[Object]:
        for index in range(asked):
            yield {**pod, "metadata": {**pod["metadata"], "name": f"replica-{index}"}}

    found = place_replicas(Scheduler(), snapshot([]), replicas(), asked)

    assert found.placed == len(placed)
    shown = [
        info._replace(pods=tuple(each._replace(is_reserved=False) for each in info.pods))
        for info in found.snapshot.nodes
    ]
    assert said(replace(found.snapshot, nodes=tuple(shown))) == said(snapshot(placed))
