"""The audit record counts the pods that had room reserved before a pod."""

from dataclasses import replace

from tests.golden.case import cluster_of
from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.server import World, review_bytes
from webhook.admission.cluster_view import ClusterView
from webhook.audit.record import PlacementEntry, ReservedEntry
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, place_and_assume


def _recorded(gpus: int, *waiting: str) -> PlacementEntry:
    """Return the recorded placement of a pod on a node of 8 GPUs; each of the pods `waiting` has room for 2."""
    node = make_node_object("n", labels={USAGE: "inference"}, capacity={"nvidia.com/gpu": 8})
    view = cluster_of({"cluster": [node]})
    assert isinstance(view, ClusterView)
    assumed: AssumedPods[str] = AssumedPods(view.snapshot)
    for name in waiting:
        pod = WaitingPod.of(make_pod(name).gpu(2).toleration(operator="Exists").obj())
        place_and_assume(Scheduler(), name, pod, assumed, name)
    world = World(cluster=replace(view, assumed=assumed))
    asked = make_pod("asked").annotate(TYPE, "inference").gpu(gpus)
    world.admissions().answer(review_bytes(asked.obj()), 1000.0, None)
    (record,) = world.records
    assert record.placement is not None
    return record.placement


def test_reserved_pods_are_counted_for_a_pod_that_fits_beside_them() -> None:
    placement = _recorded(4, "first", "second")

    assert (placement.verdict, placement.reserved) == ("Feasible", ReservedEntry(2))


def test_reserved_pods_are_counted_for_a_pod_that_waits_for_them() -> None:
    placement = _recorded(8, "first", "second")

    assert (placement.verdict, placement.reserved) == ("Waiting", ReservedEntry(2))
    assert placement.message.endswith("It would fit, but 2 pods that wait before it need the room.")


def test_record_without_reserved_pods_has_no_count() -> None:
    assert _recorded(4).reserved is None
