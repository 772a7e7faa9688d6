"""Suggestions for pods that come together."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.amounts import NVIDIA_GPU as GPU
from webhook.placement.gang.group_suggestions import Group
from webhook.placement.scheduler import Scheduler
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
