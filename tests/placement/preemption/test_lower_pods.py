"""The order of importance of the pods of a node."""

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, running, victims
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot
from webhook.placement.preemption.lower_pods import LowerPods


def test_the_pod_that_started_last_is_evicted_of_equal_ones() -> None:
    old, new = running("a", started="2026-01-01T00:00:00Z"), running("b", started="2026-01-02T00:00:00Z")
    of_none = running("c")
    one_place = ROOM | {"pods": "2"}
    assert victims(make_pod(), node("n", old, new, capacity=one_place)) == ["b"]
    assert victims(make_pod(), node("n", of_none, new, capacity=one_place)) == ["c"]


def test_pods_of_a_node_are_sorted_by_importance_and_ranked() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    pods = running("waits", 1), running("low"), running("new", 1, started=new), running("old", 1, started=old)
    snapshot = Snapshot.of([node("a", *pods), node("b", running("same", 1), running("equal", 1))])

    lower = LowerPods(snapshot, [0, 1], 2)

    assert [each.name for each in lower.pods] == ["old", "new", "waits", "low", "same", "equal"]
    assert lower.node_of.tolist() == [0, 0, 0, 0, 1, 1]
    assert lower.ranks.tolist() == [0, 1, 2, 3, 4, 4]


def test_amounts_are_those_of_each_pod_up_to_the_largest() -> None:
    huge = running("huge", 1).requests(memory=str(2**70))
    lower = LowerPods(Snapshot.of([node("a", huge, running("none"))]), [0], 2)

    assert lower.requested("memory").tolist() == [LARGEST_AMOUNT, 0]
