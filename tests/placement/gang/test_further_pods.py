"""The further pods of a gang are counted on all nodes at once, or one after the other."""

import pytest

from tests.placement.gang.gangs import HOST, WORKER, Object, asked, counted, gpu_node, gpus, on, spread
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.devices import (
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.objects.storage import make_pv, make_pvc, uses
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import Expired, never
from webhook.placement.framework.result import Placement
from webhook.placement.gang.further_pods import MOST_STEPS, Further, further_pods
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod


@pytest.mark.parametrize(
    ("mode", "expected"), [("ReadWriteMany", ("Feasible", 4, 0)), ("ReadWriteOnce", ("Unknown", 1, 0))]
)
def test_claim_is_shared_by_the_gang_only_if_many_nodes_can_mount_it(mode: str, expected: tuple[str, int, int]) -> None:
    claim = make_pvc("data", volume="v") | {}
    claim["spec"]["accessModes"] = [mode]
    objects = [gpu_node("a", 2), gpu_node("b", 2), make_pv("v"), claim]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)

    assert counted(asked(WORKER.spec(volumes=uses("data")), 4, AssumedPods(snapshot, {}))) == expected


@pytest.mark.parametrize(
    ("left", "number", "is_complete"),
    [
        pytest.param(1, 1, True, id="the claim of the first pod is known"),
        pytest.param(2, 1, False, id="that of the second one is not"),
        pytest.param(9, 1, False, id="nor those of more"),
    ],
)
def test_only_the_first_pod_of_a_gang_with_claims_of_their_own_is_counted(
    left: int, number: int, is_complete: bool
) -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOnce"])
    found = counted_further(WORKER.spec(volumes=uses("data")), left, gpu_node("a", 9), make_pv("v"), claim)

    assert (found.number, found.is_complete, found.stopped) == (number, is_complete, None)


@pytest.mark.parametrize(
    ("left", "number", "is_complete"),
    [
        pytest.param(1, 1, True, id="all pods have devices"),
        pytest.param(2, 1, False, id="the devices of the first pod are not known to the second"),
        pytest.param(9, 1, False, id="nor to more"),
    ],
)
def test_pods_are_counted_until_it_is_not_known_which_devices_they_take(
    left: int, number: int, is_complete: bool
) -> None:
    pod = make_pod("worker").spec(resourceClaims=claiming("cards", template=True))
    template = make_resource_claim("cards", exactly(), template=True)
    found = counted_further(
        pod,
        left,
        gpu_node("a", 0),
        make_device_class(),
        template,
        make_slice("a", *make_cards(4)),
        empty=("ResourceClaim",),
    )

    assert (found.number, found.is_complete, found.stopped) == (number, is_complete, None)


def test_a_pod_without_a_place_is_the_one_that_stops_the_count() -> None:
    found = counted_further(WORKER.gpu(3), 4, gpu_node("a", 2), gpu_node("b", 2))

    assert (found.number, found.is_complete) == (0, True)
    assert found.stopped is not None
    assert found.stopped.verdict != "Feasible"


def counted_further(pod: PodBuilder, left: int, *objects: Object, empty: tuple[str, ...] = ()) -> Further:
    """Return the count of pods in a cluster of `objects`, of which the kinds in `empty` are known to have none."""
    lists = [{"apiVersion": "resource.k8s.io/v1", "kind": f"{kind}List", "items": []} for kind in empty]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*objects, *lists))
    waiting = WaitingPod.of(pod.namespace("default").obj())
    own = Scheduler().answer(waiting.signature, snapshot)
    return further_pods(Scheduler(), waiting, own, snapshot, left, never)


def test_long_count_one_by_one_ends_and_claims_nothing() -> None:
    nodes = [gpus(f"n{number}", 1, zone="a") for number in range(MOST_STEPS + 10)]
    pod = WORKER.spec(topologySpreadConstraints=[spread(HOST)])

    assert counted(asked(pod, MOST_STEPS + 5, on(*nodes))) == ("Unknown", MOST_STEPS, 0)
    assert counted(asked(pod, MOST_STEPS, on(*nodes))) == ("Feasible", MOST_STEPS, 0)


class Spent(Scheduler):
    """A scheduler that knows no answer about a cluster with pods on two nodes."""

    def answer(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement, or Unknown."""
        is_spent = sum(bool(each.pods) for each in snapshot.nodes) == 2
        return Placement.unknown("spent") if is_spent else super().answer(signature, snapshot, expired)


def test_count_that_ends_with_an_unknown_answer_is_a_lower_bound() -> None:
    pod = WaitingPod.of(WORKER.spec(topologySpreadConstraints=[spread(HOST)]).obj())
    snapshot = Snapshot.of([gpus(name, 1) for name in "abc"])
    own = Scheduler().answer(pod.signature, snapshot)

    found = further_pods(Spent(), pod, own, snapshot, 3, never)

    assert (found.number, found.is_complete) == (2, False)


def test_gang_of_thousands_on_independent_nodes_is_counted_at_once() -> None:
    nodes = [gpus(f"n{number}", 8) for number in range(400)]

    assert counted(asked(WORKER, 3200, on(*nodes))) == ("Feasible", 3200, 0)
    assert counted(asked(WORKER, 3201, on(*nodes))) == ("Infeasible", 3200, 0)
