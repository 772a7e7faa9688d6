"""The pods of a simulated cluster: those that it began with, and those that were placed."""

from placement_planner.simulation.cluster import SimulatedCluster
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.plugins import node
from tests.support.views import made_anew
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.working_snapshot import _MOST_OLD_CLASSES


def test_an_evicted_pod_that_has_ended_stays_gone_when_the_snapshot_is_made_anew() -> None:
    """Many pods with labels of their own come and go, so that the snapshot keeps too many classes of pods."""
    cluster = SimulatedCluster(Snapshot.of([node("n", make_pod("victim").gpu(8).node_name("n"))]))
    (victim,) = cluster.pods_on("n")
    cluster.remove(cluster.evict(victim))

    for number in range(_MOST_OLD_CLASSES + 2):
        cluster.remove(cluster.add(RunningPod.of(make_pod("p").label("app", str(number)).obj()), 0))

    assert cluster.pods_on("n") == ()


def test_reserved_room_stays_when_the_snapshot_is_made_anew() -> None:
    cluster = SimulatedCluster(Snapshot.of([node("n")]))
    cluster.nominate([RunningPod.of(make_pod("waits").node_name("n").obj())])
    before = cluster.snapshot

    for number in range(_MOST_OLD_CLASSES + 2):
        cluster.remove(cluster.add(RunningPod.of(make_pod("p").label("app", str(number)).obj()), 0))

    assert cluster.snapshot is not before
    assert [each.name for each in cluster.snapshot.nominated.by_node["n"]] == ["waits"]


def test_reserved_room_is_in_addition_to_that_of_the_cluster() -> None:
    kept = make_pod("kept").status(phase="Pending", nominatedNodeName="n").obj()
    base = made_anew([make_node_object("n"), kept])
    cluster = SimulatedCluster(base)

    cluster.nominate([RunningPod.of(make_pod("waits").node_name("n").obj())])

    assert [each.name for each in cluster.snapshot.nominated.by_node["n"]] == ["kept", "waits"]
    cluster.nominate([])
    assert [each.name for each in cluster.snapshot.nominated.by_node["n"]] == ["kept"]
