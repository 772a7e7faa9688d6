"""The order of importance of the pods of a node."""

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, running, victims
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot
from webhook.kube.selectors import LabelRequirement, selector_matches
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


def test_pods_that_selectors_do_not_distinguish_are_of_one_kind_in_each_namespace() -> None:
    template = RunningPod.of(running("a", 1).obj())
    labels = [{"app": "abc"[at % 3], "index": f"{at}"} for at in range(3000)] + [{}, {"index": "none"}]
    pods = [
        template._replace(name=f"{at}", labels=each, namespace="xy"[at % 2])
        for at, each in enumerate(sorted(labels, key=str))
    ]
    lower = LowerPods(Snapshot.of([node("n").with_pods(pods)]), [0], 2)
    selector = (LabelRequirement("app", "In", ("a",)), LabelRequirement("index", "Exists"))

    kinds, examples = lower.kinds([selector, None])

    # Those with a, with another app, without one, and without labels.
    assert len(examples) == 6
    counted = lower.counted(lambda each: selector_matches(selector, each.labels), [selector])
    assert counted.tolist() == [selector_matches(selector, each.labels) for each in lower.pods]
    assert [examples[each].namespace for each in kinds.tolist()] == [each.namespace for each in lower.pods]
    assert [bool(examples[each].labels) for each in kinds.tolist()] == [bool(each.labels) for each in lower.pods]
