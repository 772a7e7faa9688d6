"""Suggestions for pods that come together."""

import pytest

from tests.placement.gang.gangs import GANG
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.amounts import NVIDIA_GPU as GPU
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.gang_count import Gang
from webhook.placement.gang.group_suggestions import Group, group_of_gang
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod

GATED_POD = make_pod().spec(schedulingGates=[{"name": "example.com/quota"}])


def test_gated_pods_that_fit_nowhere_get_the_suggestions_of_any_pods() -> None:
    snapshot = Snapshot.of([node("a", capacity={GPU: "8"}), node("b", capacity={GPU: "8"})])
    scheduler = Scheduler(suggestions=1)
    found = []
    for pod in (GATED_POD, make_pod()):
        waiting = WaitingPod.of(pod.gpu(16).obj())
        group = Group(lambda _: scheduler, waiting, 2, snapshot, (), never)
        found.append(group.verified(scheduler.answer(waiting.signature, snapshot)).suggestions)

    assert found[0] == found[1] == ("ask for 8 nvidia.com/gpu instead of 16: 2 pods would fit",)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2, ["2 pods would fit once the gate is removed"]),
        (3, ["2 of 3 pods would fit once the gate is removed"]),
    ],
)
def test_gated_pods_that_come_together_are_counted_together(number: int, expected: list[str]) -> None:
    pod, snapshot = WaitingPod.of(GATED_POD.gpu(4).obj()), Snapshot.of([node("a", capacity={GPU: "8"})])
    scheduler = Scheduler(suggestions=1)
    group = Group(lambda _: scheduler, pod, number, snapshot, (), never)

    assert [*group.verified(scheduler.answer(pod.signature, snapshot)).suggestions] == expected


@pytest.mark.parametrize(
    ("own_nodes", "expected"),
    [
        pytest.param((), ("a fits once it is uncordoned",), id="the group has no other pods"),
        pytest.param(("b",), ("a fits once it is uncordoned",), id="they are on another node"),
        pytest.param(("a",), (), id="they are on the node that would change"),
        pytest.param(("b", "a"), (), id="some are"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_no_change_of_a_node_with_pods_of_the_group_is_suggested(
    own_nodes: tuple[str, ...], expected: tuple[str, ...], number: int
) -> None:
    """Its own pods can hold what is free there afterwards."""
    nodes = [node("a", capacity={GPU: "8"}, unschedulable=True), node("b", capacity={GPU: "1"})]
    pod, snapshot, scheduler = WaitingPod.of(make_pod().gpu(4).obj()), Snapshot.of(nodes), Scheduler(suggestions=2)
    group = Group(lambda _: scheduler, pod, number, snapshot, own_nodes, never)

    found = group.verified(scheduler.answer(pod.signature, snapshot)).suggestions

    assert tuple(each for each in found if "uncordoned" in each) == expected


@pytest.mark.parametrize(
    ("running", "waiting", "size", "number", "own_nodes"),
    [
        pytest.param(0, 0, 4, 4, [], id="all pods are missing"),
        pytest.param(1, 0, 4, 3, ["a"], id="one runs"),
        pytest.param(1, 2, 4, 1, ["a", "b"], id="and two have room on another node"),
        pytest.param(2, 2, 4, 1, ["a", "b"], id="a further pod of a complete gang"),
    ],
)
def test_group_of_a_gang_are_its_pods_that_have_no_node(
    running: int, waiting: int, size: int, number: int, own_nodes: list[str]
) -> None:
    member = make_pod("worker").annotate(GANG, "train").gpu(1)
    snapshot = Snapshot.of([node("a", *[member] * running, capacity={GPU: "8"}), node("b", capacity={GPU: "8"})])
    reserved = RunningPod.of(member.node_name("b").obj())
    assumed = {at: AssumedPod(reserved._replace(name=f"w{at}"), 0) for at in range(waiting)}
    gang = Gang(GangKey("default", GANG, "train"), size)

    group = group_of_gang(
        gang, WaitingPod.of(member.obj()), lambda _: Scheduler(), AssumedPods(snapshot, assumed), never
    )

    assert (group.number, [*group.own_nodes]) == (number, own_nodes)
