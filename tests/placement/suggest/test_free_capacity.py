"""Which pods of lower priority must end for a pod to have room on a node."""

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler
from webhook.placement.suggest.changes import Scenario
from webhook.placement.suggest.free_capacity import _can_be_freed
from webhook.placement.suggest.node_groups import NodeGroup

_ROOM = {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}


@pytest.mark.parametrize(("reserved", "is_freed"), [(0, True), (1, True), (2, False)])
def test_places_that_are_reserved_are_not_freed(reserved: int, is_freed: bool) -> None:
    full = node("n", *[make_pod(f"bound-{at}") for at in range(2 - reserved)], capacity=_ROOM | {"pods": "2"})
    waiting = [make_pod(f"p{at}") for at in range(reserved)]
    assert can_be_freed(make_pod(), full, *waiting, has_too_many_pods=True) == is_freed


@pytest.mark.parametrize(("reserved", "is_freed"), [(80, False), (81, True)])
def test_port_that_is_reserved_is_not_freed(reserved: int, is_freed: bool) -> None:
    taken = node("n", make_pod("bound").host_port(80), capacity=_ROOM)
    waiting = make_pod("p").host_port(reserved)
    assert can_be_freed(make_pod().host_port(80), taken, waiting, has_taken_ports=True) == is_freed


def test_a_node_with_unhealthy_cards_is_no_reason_to_ask_for_fewer() -> None:
    ill = node("ill", capacity={"nvidia.com/gpu": 8}, allocatable={"nvidia.com/gpu": 5})
    small = node("small", capacity={"nvidia.com/gpu": 4})

    (suggestion,) = Scheduler(suggestions=1).place(make_pod().gpu(8).obj(), Snapshot.of([ill, small])).suggestions

    assert suggestion.endswith("the largest free block is 4")


def can_be_freed(pod: PodBuilder, info: NodeInfo, *reserved: PodBuilder, **lacks: bool) -> bool:
    """Return whether bound pods use what is missing on the node, on which room is `reserved`."""
    assumed = [RunningPod.of(each.obj()).assumed_on("n", 0) for each in reserved]
    found = {"has_too_many_pods": False, "has_taken_ports": False, "is_cordoned": False} | lacks
    situation = Scenario(pod_info(pod), Snapshot.of([info.with_pods(assumed)]))
    return _can_be_freed(NodeGroup(np.array([0]), (), (), **found), situation, 0)


@pytest.mark.parametrize(("reserved", "named"), [("a", "b"), ("b", "a")])
def test_node_whose_room_is_reserved_is_passed_over(reserved: str, named: str) -> None:
    nodes = {
        name: node(name, *([make_pod(f"{name}-r").gpu(8)] if name != reserved else []), capacity=_ROOM) for name in "ab"
    }
    waits = RunningPod.of(make_pod("waits").gpu(8).obj()).assumed_on(reserved, 0)
    nodes[reserved] = nodes[reserved].with_pods((waits,))

    (suggestion,) = Scheduler(suggestions=1).place(make_pod().gpu(8).obj(), Snapshot.of(nodes.values())).suggestions

    assert suggestion.startswith(f"{named} fits once 8 nvidia.com/gpu")
