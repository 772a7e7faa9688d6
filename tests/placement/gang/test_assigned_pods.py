"""Room that Kueue has assigned to pods of other Workloads is taken, and a gang runs where its own pods are assigned."""

from typing import Any

import pytest

from tests.placement.gang.gangs import GANG, HOST, WORKER, asked, counted, gpus
from tests.support.objects.batch_objects import workload
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.backends.references import Within
from webhook.cluster.batch.kueue import KueueObjects, Workload
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import KUEUE_POD_SET, KUEUE_TOPOLOGY, KUEUE_WORKLOAD
from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import AssumedPods

OTHER = make_pod("other").gpu(1)
OF_KUEUE = WORKER.annotate(KUEUE_TOPOLOGY, "rack").label("kueue.x-k8s.io/pod-group-name", "train")


def of_other(*, pod_set: str = "main", name: str = "other") -> PodBuilder:
    return OTHER.annotate(KUEUE_WORKLOAD, name).label(KUEUE_POD_SET, pod_set)


def with_workloads(
    *pods: PodBuilder, levels: list[str], domains: Any, names: tuple[str, ...] = ("other",)
) -> AssumedPods[Any]:
    """Return two racks of two nodes, `pods` on the first, and Workloads whose pods are assigned to `domains`."""
    first, second = gpus("a", 4, *pods, rack="1"), gpus("b", 4, rack="1")
    nodes = [first, second, gpus("c", 4, rack="2"), gpus("d", 1, rack="2")]
    found = {("default", name): Workload.of(workload(name, OTHER.obj(), levels, *domains)) for name in names}
    return AssumedPods(Snapshot.of(nodes, kueue=KueueObjects(workloads=found)), {})


def room(placement: Placement) -> dict[str, int]:
    assert placement.gang is not None
    assert placement.gang.together is not None
    return {each.value: each.fits for each in placement.gang.together.domains}


@pytest.mark.parametrize(
    ("running", "in_first"),
    [
        pytest.param([], 5, id="no pod is on its node"),
        pytest.param([of_other()], 5, id="a pod is on its node"),
        pytest.param([of_other(pod_set="head")], 4, id="a pod of another pod set is on the node"),
        pytest.param([of_other(name="third")], 4, id="a pod of another Workload is on the node"),
        pytest.param([of_other()] * 4, 4, id="all pods are on the node, and one more"),
    ],
)
def test_room_that_is_assigned_to_other_workloads_is_taken(running: list[PodBuilder], in_first: int) -> None:
    assumed = with_workloads(*running, levels=[HOST], domains=[(["a"], 3), (["lost"], 2)])

    placement = asked(OF_KUEUE, 6, assumed, within=Within("rack"))

    assert counted(placement) == ("Waiting", 5, 0)
    assert room(placement) == {"1": in_first, "2": 5}


def test_pod_is_subtracted_once_from_a_domain_that_is_listed_twice() -> None:
    assumed = with_workloads(of_other(), levels=[HOST], domains=[(["a"], 1), (["a"], 2)])

    assert room(asked(OF_KUEUE, 6, assumed, within=Within("rack"))) == {"1": 5, "2": 5}


def test_gang_of_another_scheduler_finds_the_room() -> None:
    assumed = with_workloads(levels=[HOST], domains=[(["a"], 3)])

    assert asked(WORKER, 6, assumed, within=Within("rack")).verdict == "Feasible"


def test_room_in_a_rack_without_chosen_nodes_is_not_known() -> None:
    assumed = with_workloads(levels=["rack"], domains=[(["1"], 3)])

    placement = asked(OF_KUEUE, 6, assumed, within=Within("rack"))

    assert placement.verdict == "Unknown"
    assert placement.message.endswith("Pods of Workload other of Kueue have no node yet.")
    assert asked(OF_KUEUE, 9, assumed, within=Within("rack")).verdict == "Infeasible"


def test_gang_runs_where_its_own_workload_is_assigned() -> None:
    assumed = with_workloads(make_pod().gpu(3), levels=[HOST], domains=[(["c"], 3), (["d"], 1)], names=("train",))

    waiting, feasible = (asked(OF_KUEUE, size, assumed, within=Within("rack")) for size in (6, 5))

    assert "Gang train runs in 2, which has room for 5 of the 6 missing pods" in waiting.message
    assert (waiting.verdict, feasible.verdict) == ("Waiting", "Feasible")


@pytest.mark.parametrize(
    ("pod", "in_first"),
    [
        pytest.param(OF_KUEUE, 6, id="of a group of pods"),
        pytest.param(WORKER.annotate(KUEUE_TOPOLOGY, "rack"), 4, id="of no Workload yet"),
        pytest.param(
            of_other(name="train").annotate(KUEUE_TOPOLOGY, "rack").annotate(GANG, "train"), 6, id="of the pod set"
        ),
        pytest.param(
            of_other(name="train", pod_set="head").annotate(KUEUE_TOPOLOGY, "rack").annotate(GANG, "train"),
            4,
            id="of another pod set",
        ),
    ],
)
def test_only_the_assignment_of_the_own_pod_set_is_room_for_a_gang(pod: PodBuilder, in_first: int) -> None:
    assumed = with_workloads(levels=[HOST], domains=[(["a"], 2)], names=("other", "train"))

    assert room(asked(pod, 7, assumed, within=Within("rack")))["1"] == in_first


@pytest.mark.parametrize(
    ("running", "assigned", "placed"),
    [
        pytest.param(0, 3, 3, id="only assigned"),
        pytest.param(2, 0, 2, id="only running"),
        pytest.param(2, 3, 3, id="those that run are among the assigned ones"),
        pytest.param(3, 3, 3, id="all assigned pods run"),
        pytest.param(4, 3, 4, id="more run than are assigned"),
    ],
)
def test_pod_that_runs_where_it_is_assigned_counts_once(running: int, assigned: int, placed: int) -> None:
    domains = [(["a"], assigned)] if assigned else []
    assumed = with_workloads(*[OF_KUEUE] * running, levels=[HOST], domains=domains, names=("train",))

    placement = asked(OF_KUEUE, 6, assumed, within=Within("rack"))

    assert placement.gang is not None
    assert placement.gang.together is not None
    members = {each.value: each.members for each in placement.gang.together.domains}
    assert members == {"1": placed, "2": 0}
