"""The sums of a node, which follow its pods one by one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.node_info import Node, NodeInfo, RunningPod

NODE = Node.of(make_node_object("a", capacity={"cpu": 8, "nvidia.com/gpu": 8}))
KEY = "maip.mxsf.io/gang"

SINCE = "2026-01-31T12:00:00Z"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


@st.composite
def running_pods(draw: st.DrawFn) -> RunningPod:
    pod = make_pod(draw(st.sampled_from("pqr"))).namespace("x").node_name("a")
    if cards := draw(st.integers(0, 2)):
        pod = pod.gpu(cards)
    if amount := draw(st.integers(0, 2)):
        pod = pod.requests(cpu=amount)
    if draw(st.booleans()):
        pod = pod.requests(memory="0")
    if gang := draw(st.sampled_from(("", "one", "two"))):
        pod = pod.annotate(KEY, gang)
    if scheduler := draw(st.sampled_from(("", "volcano", "kai-scheduler"))):
        pod = pod.scheduler(scheduler)
    return RunningPod.of(pod.spec(priority=draw(st.integers(-1, 1))).obj())


@given(st.lists(running_pods(), max_size=4), st.data())
def test_node_without_a_pod_is_the_one_that_never_had_it(pods: list[RunningPod], data: st.DataObject) -> None:
    info = NodeInfo.of(NODE, pods)
    left = [*pods]
    while left:
        gone = data.draw(st.sampled_from(left))
        left.remove(gone)
        info, wanted = info.without_pod(gone), NodeInfo.of(NODE, left)

        amounts = [{name: amount for name, amount in each.requested.items() if amount} for each in (info, wanted)]
        assert amounts[0] == amounts[1]
        assert sorted(info.gangs) == sorted(wanted.gangs)
        assert info._replace(requested={}, gangs=()) == wanted._replace(requested={}, gangs=())


@pytest.mark.parametrize(
    ("capacity", "allocatable", "unhealthy"),
    [
        ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8}, {}),
        ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 5}, {"nvidia.com/gpu": 3}),
        ({"nvidia.com/gpu": 8, "amd.com/gpu": 4}, {"nvidia.com/gpu": 7, "amd.com/gpu": 4}, {"nvidia.com/gpu": 1}),
        ({"nvidia.com/gpu": 8}, {"cpu": 1}, {"nvidia.com/gpu": 8}),
        ({"nvidia.com/gpu": 4, "amd.com/gpu": 4}, {"nvidia.com/gpu": 5, "amd.com/gpu": 3}, {"amd.com/gpu": 1}),
        ({"cpu": 8}, {"cpu": 7}, {}),
    ],
)
def test_devices_that_are_not_allocatable_are_unhealthy(
    capacity: dict[str, int], allocatable: dict[str, int], unhealthy: dict[str, int]
) -> None:
    made: dict[str, Any] = make_node_object("a")
    made["status"] |= {
        "capacity": {name: str(amount) for name, amount in capacity.items()},
        "allocatable": {name: str(amount) for name, amount in allocatable.items()},
    }

    assert dict(Node.of(made).unhealthy) == unhealthy


def test_status_of_a_pod_that_is_not_bound_is_not_read() -> None:
    pod = make_pod("p").status(startTime="soon").obj()

    assert RunningPod.of(pod).started_seconds == 0


@pytest.mark.parametrize(
    ("conditions", "taints", "since", "is_silent"),
    [
        ([], [], None, False),
        ([{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}], [], None, False),
        ([{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}], [NOT_READY], None, False),
        ([{"type": "Ready", "status": "Unknown", "lastTransitionTime": SINCE}], [NOT_READY], 1769860800, True),
        ([{"type": "Ready", "status": "False", "lastTransitionTime": SINCE}], [], 1769860800, False),
        ([{"type": "Ready", "status": "Unknown"}], [], 0, True),
        ([{"type": "Ready"}, {"type": "DiskPressure", "status": "True"}], [NOT_READY], 0, True),
        ([], [NOT_READY, {**NOT_READY, "timeAdded": SINCE}], 1769860800, True),
        ([], [{**NOT_READY, "key": "node.kubernetes.io/disk-pressure", "timeAdded": SINCE}], None, False),
        (["x"], [], None, False),
    ],
)
def test_a_node_is_ready_by_its_condition_and_else_by_its_taints(
    conditions: list[Any], taints: list[Any], since: int | None, is_silent: bool
) -> None:
    node = {"metadata": {"name": "n"}, "spec": {"taints": taints}, "status": {"conditions": conditions}}

    read = Node.of(node)

    assert (read.not_ready_seconds, read.is_silent) == (since, is_silent)
