"""A pod that is nominated and then bound counts once."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.work import calls_of
from webhook.cli.inputs.private_fields import without_secrets
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cache.pending_tracker import PendingTracker
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.pods.pending_pods import PendingPod, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.pod.stored_pod import Binding

Object = dict[str, Any]

_WAITS = make_pod("p").requests(cpu="1").status(phase="Pending", nominatedNodeName="a").obj()
_BOUND = make_pod("p").requests(cpu="1").node_name("a").status(phase="Running").obj()


def nominated_to(snapshot: Snapshot, node: str = "a") -> list[str]:
    return [each.name for each in snapshot.nominated.by_node.get(node, ())]


def places(cache: ClusterCache) -> tuple[list[str], int]:
    """Which pods are nominated to the node, and how many run there."""
    snapshot = cache.snapshot()
    return nominated_to(snapshot), int(snapshot.load.pods[0])


def cache_of_waiting() -> ClusterCache:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace("Pod", [_WAITS])
    # The table of nominations is made here, and must be made anew after each change.
    cache.snapshot()
    return cache


def test_a_nominated_pod_takes_nothing_yet() -> None:
    assert places(cache_of_waiting()) == (["p"], 0)


def test_a_pod_that_is_bound_counts_on_its_node_alone() -> None:
    cache = cache_of_waiting()
    cache.apply("Pod", "MODIFIED", _BOUND)
    assert places(cache) == ([], 1)
    assert not cache.snapshot().pending


@pytest.mark.parametrize("pod", [_WAITS, _BOUND], ids=["pending", "bound"])
def test_a_pod_that_is_deleted_counts_no_more(pod: Object) -> None:
    cache = cache_of_waiting()
    cache.apply("Pod", "MODIFIED", pod)
    cache.apply("Pod", "DELETED", pod)
    assert places(cache) == ([], 0)
    assert not cache.snapshot().pending


def test_a_pod_whose_name_is_used_again_is_pending_again() -> None:
    cache = cache_of_waiting()
    for event, pod in (("MODIFIED", _BOUND), ("DELETED", _BOUND), ("ADDED", _WAITS)):
        cache.apply("Pod", event, pod)
    assert places(cache) == (["p"], 0)


def test_an_event_of_a_pod_that_has_become_bound_is_noted_once() -> None:
    noted: list[Binding] = []

    class Follower(ClusterFollower):
        def pod_bound(self, pod: Binding, generation: int) -> None:
            assert generation == cache.snapshot().generation
            noted.append(pod)

    cache = ClusterCache(Follower())
    cache.replace("Pod", [_BOUND | {"metadata": {"name": "listed"}}, _WAITS])
    others = [make_pod("new").node_name("a").obj(), make_pod("waits").obj()]
    for event, pod in [("MODIFIED", _WAITS), ("MODIFIED", _BOUND), ("MODIFIED", _BOUND | {"status": {}})]:
        cache.apply("Pod", event, pod)
    for pod in others:
        cache.apply("Pod", "ADDED", pod)
    cache.apply("Pod", "DELETED", _BOUND)
    assert noted == [Binding.of(_BOUND), Binding.of(others[0])]


@pytest.mark.parametrize("other", [None, "b", "a"])
def test_a_nomination_that_is_taken_back_keeps_no_room(other: str | None) -> None:
    """A pod beside it may be nominated, too; the pod stays pending."""
    cache, is_beside = cache_of_waiting(), [] if other is None else ["q"]
    for name in is_beside:
        beside = make_pod(name).status(phase="Pending", nominatedNodeName=other)
        cache.apply("Pod", "ADDED", beside.obj())
        assert sorted(nominated_to(cache.snapshot(), other or "")) == sorted(["q", *(["p"] if other == "a" else [])])

    cache.apply("Pod", "MODIFIED", _WAITS | {"status": {"phase": "Pending"}})

    snapshot = cache.snapshot()
    assert sorted(key.name for key in snapshot.pending) == ["p", *is_beside]
    assert {name: nominated_to(snapshot, name) for name in snapshot.nominated.by_node} == (
        {other: ["q"]} if other else {}
    )


def test_another_nomination_takes_the_place_of_the_first() -> None:
    cache = cache_of_waiting()
    cache.apply("Pod", "MODIFIED", _WAITS | {"status": {"phase": "Pending", "nominatedNodeName": "b"}})
    snapshot = cache.snapshot()
    assert (nominated_to(snapshot, "a"), nominated_to(snapshot, "b")) == ([], ["p"])


def test_other_nodes_leave_nominations_as_they_were() -> None:
    cache = cache_of_waiting()
    before = cache.snapshot()
    cache.apply("Node", "ADDED", make_node_object("b"))
    assert cache.snapshot().nominated is before.nominated


def test_other_pending_pods_leave_nominations_as_they_were() -> None:
    cache = cache_of_waiting()
    before = cache.snapshot()
    cache.apply("Pod", "ADDED", make_pod("other").obj())
    after = cache.snapshot()
    assert after.pending is not before.pending
    assert after.nominated is before.nominated


def test_repeated_nomination_changes_nothing() -> None:
    cache = cache_of_waiting()
    before = cache.snapshot()
    cache.apply("Pod", "MODIFIED", _WAITS)
    assert cache.snapshot() is before


def read(*objects: Object) -> Snapshot:
    return snapshot_from_documents(Document("cluster", each) for each in (make_node_object("a"), *objects))


@pytest.mark.parametrize(
    ("pod", "is_nominated"),
    [
        pytest.param(_WAITS, True, id="it waits"),
        pytest.param(_WAITS | {"status": {"phase": "Failed", "nominatedNodeName": "a"}}, False, id="it has ended"),
        pytest.param(_BOUND | {"status": {"nominatedNodeName": "a"}}, False, id="it is bound"),
        pytest.param(make_pod("p").obj(), False, id="it has no nomination"),
        pytest.param(
            _WAITS | {"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, True, id="it is dying"
        ),
    ],
)
def test_nominated_pods_of_a_file(pod: Object, is_nominated: bool) -> None:
    assert nominated_to(read(pod)) == (["p"] if is_nominated else [])


def test_malformed_nomination_is_reported_with_its_field() -> None:
    with pytest.raises(InvalidInput) as caught:
        read(_WAITS | {"status": {"nominatedNodeName": 7}})
    assert [error.path for error in caught.value.errors] == ["cluster: Pod p: status.nominatedNodeName"]


def test_a_shared_file_keeps_nominations() -> None:
    shared = [without_secrets(each) for each in (make_node_object("a"), copy.deepcopy(_WAITS))]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in shared)
    assert nominated_to(snapshot, "a") == ["p"]


def test_the_next_snapshot_costs_what_has_changed() -> None:
    cache = cache_of_waiting()
    for number in range(2000):
        cache.apply("Pod", "ADDED", make_pod(f"p{number}").obj())
    assert len(cache.snapshot().pending) == 2001
    cache.apply("Pod", "ADDED", make_pod("last").obj())
    assert calls_of(cache.snapshot) < 1000
    assert len(cache.snapshot().pending) == 2002


def test_the_namespace_with_the_most_pods_loses_its_latest_when_memory_is_short() -> None:
    tracker = PendingTracker(budget_bytes=5 * 4096)
    for namespace, name in [("crowd", str(number)) for number in range(50)] + [("other", "p"), ("other", "q")]:
        pod = PendingPod.of(make_pod(name).namespace(namespace).obj())
        tracker.put(Key(namespace, name), replace(pod, content=b"x" * 2048))
    assert sorted(map(tuple, tracker.pending())) == [
        ("crowd", "0"),
        ("crowd", "1"),
        ("crowd", "2"),
        ("other", "p"),
        ("other", "q"),
    ]


def test_a_nominated_pod_that_memory_has_no_room_for_takes_none_on_its_node() -> None:
    """An older pod becomes larger, so the latest of the namespace, which is nominated, is lost."""
    tracker = PendingTracker(budget_bytes=2 * 4096)
    for name, pod in (("old", make_pod("old").obj()), ("p", _WAITS)):
        tracker.put(Key("x", name), PendingPod.of(pod))
    assert [*tracker.nominated(tracker.pending()).by_node] == ["a"]

    tracker.put(Key("x", "old"), replace(PendingPod.of(make_pod("old").obj()), content=b"x" * 5000))

    assert [*tracker.nominated(tracker.pending()).by_node] == []


def test_a_pod_that_leaves_makes_room_for_others() -> None:
    tracker = PendingTracker(budget_bytes=4096)
    pod = PendingPod.of(make_pod("p").obj())
    for number in range(5):
        tracker.put(Key("x", str(number)), pod)
        assert len(tracker.keys()) == 1
        tracker.put(Key("x", str(number)), None)
        assert len(tracker.keys()) == 0


def test_a_pod_that_changes_takes_no_more_room_each_time() -> None:
    tracker = PendingTracker(budget_bytes=2 * 4096)
    pod = PendingPod.of(make_pod("p").obj())
    for number in range(50):
        tracker.put(Key("x", "p"), replace(pod, content=b"x" * (1000 + number)))
    tracker.put(Key("x", "q"), pod)
    assert len(tracker.keys()) == 2


@example([("p", "a"), ("p", "b"), ("x", ""), ("large", "a"), ("x", "")])
@given(st.lists(st.tuples(st.sampled_from(("p", "large", *"llxx")), st.sampled_from("abc")), max_size=60))
def test_changes_are_those_between_two_tables(steps: list[tuple[str, str]]) -> None:
    tracker = PendingTracker(budget_bytes=2 * 2500)
    before = tracker.pending()
    for number, (step, name) in enumerate(steps):
        key = Key("x", name)
        match step:
            case "p" | "large":
                pod = PendingPod.of(make_pod(name).namespace("x").uid(str(number)).obj())
                tracker.put(key, replace(pod, content=b"x" * (2000 if step == "large" else 100)))
            case "l":
                tracker.put(key, None)
            case _:
                after = tracker.pending()
                changed, gone = pending_changes(before, after)
                all_changed, all_gone = pending_changes({**before}, {**after})
                assert {id(each) for each in changed} == {id(each) for each in all_changed}
                assert (len(changed), sorted(gone)) == (len(all_changed), sorted(all_gone))
                before = after
