"""Which pods of lower priority must end for a pod to have room on a node."""

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.suggest.changes import Scenario
from webhook.placement.suggest.free_capacity import _can_be_freed, _victims
from webhook.placement.suggest.node_groups import NodeGroup

_ROOM = {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}


def running(name: str, priority: int = 0, cards: int = 0) -> PodBuilder:
    return (make_pod(name).gpu(cards) if cards else make_pod(name)).spec(priority=priority)


def victims(pod: PodBuilder, info: NodeInfo) -> list[str]:
    """The names of the pods to evict, in the order in which they are chosen."""
    situation = Scenario(pod_info(pod.spec(priority=100)), Snapshot.of([info]))
    return [each.name for each in _victims(situation, 0)]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param(4, [], id="there is a place"),
        pytest.param(3, ["x"], id="one place is missing"),
        pytest.param(2, ["x", "y"], id="two are missing"),
        pytest.param(1, ["x", "y", "z"], id="three are missing"),
        pytest.param(0, [], id="no end of a pod is enough"),
    ],
)
def test_as_many_pods_are_evicted_as_places_are_missing(allowed: int, expected: list[str]) -> None:
    pods = running("z", 3), running("x", 1), running("y", 2)
    assert victims(make_pod(), node("n", *pods, capacity=_ROOM | {"pods": str(allowed)})) == expected


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        pytest.param(2, [], id="they are free"),
        pytest.param(3, ["x"], id="one is missing"),
        pytest.param(4, ["x"], id="as many as one pod has"),
        pytest.param(5, ["x", "y"], id="as many as two pods have"),
        pytest.param(8, ["x", "y"], id="all"),
        pytest.param(9, [], id="more than the node has"),
    ],
)
def test_pods_are_evicted_until_no_card_is_missing(cards: int, expected: list[str]) -> None:
    pods = running("y", 2, cards=4), running("x", 1, cards=2), running("idle")
    assert victims(make_pod().gpu(cards), node("n", *pods, capacity=_ROOM)) == expected


def test_pod_of_no_lower_priority_stays() -> None:
    pods = running("same", 100, cards=4), running("higher", 101, cards=2), running("lower", 99, cards=2)
    info = node("n", *pods, capacity=_ROOM)
    assert victims(make_pod().gpu(2), info) == ["lower"]
    assert victims(make_pod().gpu(3), info) == []


def test_pod_that_takes_the_port_is_evicted_and_no_other() -> None:
    pods = running("a"), running("web").host_port(80).host_port(443), running("z").host_port(81)
    info = node("n", *pods, capacity=_ROOM)
    assert victims(make_pod().host_port(80), info) == ["web"]
    assert victims(make_pod().host_port(81).host_port(443), info) == ["web", "z"]
    assert victims(make_pod().host_port(82), info) == []


def test_ports_and_cards_and_places_are_all_needed() -> None:
    pods = running("a", 1, cards=4), running("web", 2, cards=1).host_port(80), running("z", 3, cards=3)
    assert victims(make_pod().host_port(80).gpu(4), node("n", *pods, capacity=_ROOM)) == ["a", "web"]
    assert victims(make_pod().host_port(80).gpu(6), node("n", *pods, capacity=_ROOM)) == ["a", "web", "z"]
    assert victims(make_pod().gpu(1), node("n", *pods, capacity=_ROOM | {"pods": "2"})) == ["a", "web"]


@pytest.mark.parametrize(("reserved", "is_freed"), [(0, True), (1, True), (2, False)])
def test_places_that_are_reserved_are_not_freed(reserved: int, is_freed: bool) -> None:
    full = node("n", *[running(f"bound-{at}") for at in range(2 - reserved)], capacity=_ROOM | {"pods": "2"})
    waiting = [make_pod(f"p{at}") for at in range(reserved)]
    assert can_be_freed(make_pod(), full, *waiting, has_too_many_pods=True) == is_freed


@pytest.mark.parametrize(("reserved", "is_freed"), [(80, False), (81, True)])
def test_port_that_is_reserved_is_not_freed(reserved: int, is_freed: bool) -> None:
    taken = node("n", running("bound").host_port(80), capacity=_ROOM)
    waiting = make_pod("p").host_port(reserved)
    assert can_be_freed(make_pod().host_port(80), taken, waiting, has_taken_ports=True) == is_freed


def can_be_freed(pod: PodBuilder, info: NodeInfo, *reserved: PodBuilder, **lacks: bool) -> bool:
    """Return whether bound pods use what is missing on the node, on which room is `reserved`."""
    assumed = [RunningPod.of(each.obj()).assumed_on("n", 0) for each in reserved]
    found = {"has_too_many_pods": False, "has_taken_ports": False, "is_cordoned": False} | lacks
    situation = Scenario(pod_info(pod), Snapshot.of([info.with_pods(assumed)]))
    return _can_be_freed(NodeGroup(np.array([0]), (), (), **found), situation, 0)
