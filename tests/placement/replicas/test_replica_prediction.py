"""The replicas of an object are placed beside the pods that wait before them."""

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.storage import available, make_csi_node, make_pv, make_pvc, make_storage_class, uses
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.replicas.replica_prediction import predict_replicas
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.pending_placement import place_pending


def test_pods_that_wait_are_not_the_reason_if_the_replicas_themselves_are() -> None:
    """A node attaches two volumes, and each replica has one of its own."""
    numbers = range(4)
    volumes = [make_pv(f"v{number}") for number in numbers]
    claims = [make_pvc(f"c{number}", volume=f"v{number}") for number in numbers]
    objects = [make_node_object("a"), make_csi_node("a", disk=2), *volumes, *claims, make_pod("waits").obj()]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    pending = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    replicas = [make_pod(f"web-{number}").spec(volumes=uses(f"c{number}")).obj() for number in numbers]

    found = predict_replicas(Scheduler(), pending, replicas, len(replicas)).found

    assert (found.placed, found.placement.waiting_before) == (2, 0)
    assert found.placement.message == "0/1 nodes are available: 1 node(s) exceed max volume count."


def test_volumes_of_the_replicas_are_taken_for_pods_after_them() -> None:
    host = {"kubernetes.io/hostname": ["a"]}
    objects = [
        make_node_object("a", labels={"kubernetes.io/hostname": "a"}),
        make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        available(make_pv("disk", "local", on=host)),
        make_pvc("c0", "local"),
        make_pvc("c1", "local"),
        make_pod("waits").obj(),
    ]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    pending = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    first, second = (make_pod(f"web-{number}").spec(volumes=uses(f"c{number}")).obj() for number in range(2))

    found = predict_replicas(Scheduler(), pending, [first], 1)
    after = predict_replicas(Scheduler(), found.assumed, [second], 1)

    assert (found.found.placed, after.found.placed) == (1, 0)
    assert predict_replicas(Scheduler(), pending, [second], 1).found.placed == 1
