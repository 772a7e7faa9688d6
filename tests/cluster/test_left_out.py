"""Objects that a view leaves out, although it knows their kind."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cluster.cache.replica_sets import cache_of, replica_set
from webhook.cluster.cache.optional_objects import MOST_OBJECT_BYTES
from webhook.cluster.left_out import LeftOutTracker
from webhook.cluster.objects.selecting_objects import Owner


def test_object_that_is_too_large_is_left_out_and_reported() -> None:
    cache = cache_of()
    problem = cache.apply("ReplicaSet", "ADDED", replica_set("large", values=2_000))
    assert problem is not None
    assert str(MOST_OBJECT_BYTES) in problem.message
    snapshot = cache.snapshot()
    assert snapshot.left_out.has("ReplicaSet", "x", "large")
    assert snapshot.left_out.count == 1
    assert snapshot.workloads.lacks("x", Owner("apps/v1", "ReplicaSet", "large"))


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_object_that_becomes_smaller_or_goes_is_not_left_out_any_more(event: str) -> None:
    cache = cache_of(replica_set("large", values=2_000))
    before = cache.snapshot()
    cache.apply("ReplicaSet", event, replica_set("large"))
    assert (before.left_out.count, cache.snapshot().left_out.count) == (1, 0)
    assert bool(cache.snapshot().workloads) is (event == "MODIFIED")
    assert not cache.invalid


def test_object_that_is_left_out_and_in_no_list_any_more_is_gone() -> None:
    cache = cache_of(replica_set("large", values=2_000), replica_set("small"))
    cache.replace("ReplicaSet", [replica_set("small")])
    assert cache.snapshot().left_out.count == 0
    assert not cache.invalid


def test_malformed_service_is_left_out() -> None:
    cache = cache_of({"metadata": {"name": "s", "namespace": "x"}, "spec": {"selector": {"app": 1}}}, kind="Service")
    assert cache.snapshot().left_out.names == {("Service", "x"): {"s"}}


KINDS, NAMES = ("Service", "ReplicaSet"), ("a", "b")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "discard", "current")),
        st.sampled_from(KINDS),
        st.sampled_from(("x", "y")),
        st.sampled_from(NAMES),
    ),
    max_size=12,
)


# One of two objects of a namespace is known again, after a snapshot was made of both.
@example(
    [
        ("add", "Service", "x", "a"),
        ("add", "Service", "x", "b"),
        ("current", "Service", "x", "a"),
        ("discard", "Service", "x", "a"),
    ]
)
@given(STEPS)
def test_tracker_equals_a_plain_set(steps: list[tuple[str, str, str, str]]) -> None:
    tracker, plain = LeftOutTracker(), set[tuple[str, str, str]]()
    for step, kind, namespace, name in steps:
        key = kind, namespace, name
        if step == "add":
            tracker.add(*key)
            plain.add(key)
        elif step == "discard":
            assert tracker.discard(*key) is (key in plain)
            plain.discard(key)
        else:
            shown = tracker.current()
            assert tracker.current() is shown
            assert not tracker.has_changed
    shown = tracker.current()
    assert {(*key, name) for key, names in shown.names.items() for name in names} == plain
    assert all(shown.names.values())
    assert shown.count == len(plain)
    for kind in KINDS:
        assert shown.has_any(kind) is any(each[0] == kind for each in plain)
        assert {(kind, *each) for each in tracker.names(kind)} == {each for each in plain if each[0] == kind}
        assert all(shown.has(kind, "x", name) is ((kind, "x", name) in plain) for name in NAMES)
