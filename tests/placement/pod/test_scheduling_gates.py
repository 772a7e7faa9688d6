"""A pod with a scheduling gate waits, beside nodes that could take it."""

import pytest

from placement_planner.capacity.counting import count_each
from placement_planner.capacity.simulation import FurtherPods
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.amounts import NVIDIA_GPU as GPU
from webhook.placement.framework.result import GATED
from webhook.placement.scheduler import Scheduler


@pytest.mark.parametrize(
    ("gates", "is_gated"),
    [
        pytest.param([{"name": "quota"}], True, id="a gate"),
        pytest.param([], False, id="an empty list"),
        pytest.param(None, False, id="null"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}], False, id="of Kueue"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "quota"}], True, id="of Kueue and another"),
    ],
)
def test_a_pod_with_a_gate_does_not_enter_the_queue(gates: list[dict[str, str]] | None, is_gated: bool) -> None:
    placement = Scheduler().place(make_pod().spec(schedulingGates=gates).obj(), Snapshot.of([node("a")]))
    assert placement.verdict == ("Waiting" if is_gated else "Feasible")
    assert placement.message.startswith(GATED) is is_gated


GATED_POD = make_pod().spec(schedulingGates=[{"name": "example.com/quota"}])


def suggestions(pod: PodBuilder, *cards: int) -> tuple[str, ...]:
    nodes = [node(f"n{each}", capacity={"nvidia.com/gpu": str(count)}) for each, count in enumerate(cards)]
    return Scheduler(suggestions=2).place(pod.obj(), Snapshot.of(nodes)).suggestions


def test_pod_that_only_waits_for_a_gate_is_suggested_nothing_else() -> None:
    assert suggestions(GATED_POD.gpu(8), 8, 4) == ("1 node can take it once the gate is removed",)
    assert suggestions(GATED_POD.gpu(4), 8, 4) == ("2 nodes can take it once the gate is removed",)


def test_all_gates_of_a_pod_are_to_be_removed() -> None:
    two = make_pod().spec(schedulingGates=[{"name": "example.com/quota"}, {"name": "example.com/data"}])

    assert suggestions(two.gpu(8), 8, 4) == ("1 node can take it once the gates are removed",)


def test_gated_pod_that_fits_nowhere_gets_the_suggestions_of_any_pod() -> None:
    assert suggestions(GATED_POD.gpu(16), 8, 4) == suggestions(make_pod().gpu(16), 8, 4) != ()


def test_further_pods_are_counted_without_their_gates() -> None:
    pod = GATED_POD.gpu(2).obj()

    assert count_each(FurtherPods(Scheduler(), lambda _: pod), Snapshot.of([node("a", capacity={GPU: "5"})])).fits == 2
