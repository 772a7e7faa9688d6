"""Pods that kube-scheduler has placed and that the view does not show yet."""

from dataclasses import replace

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from tests.support.servers.server import Clock
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.serving.extender.extender_pods import ExtenderPods, RecentlyBound

_NOBODY = PodKey("", "")


def placed(name: str, on: str, gpus: int = 1) -> RunningPod:
    return RunningPod.of(make_pod(name).node_name(on).gpu(gpus).obj())


def view(*on_a: str) -> Snapshot:
    return Snapshot.of([node("a", *(make_pod(name).node_name("a").gpu(1) for name in on_a)), node("b")])


def used(snapshot: Snapshot) -> dict[str, int]:
    columns = zip(snapshot.nodes, snapshot.requested("nvidia.com/gpu").tolist(), strict=True)
    return {info.node.name: gpus for info, gpus in columns}


def test_assumed_pods_use_their_nodes() -> None:
    assumed, snapshot = ExtenderPods(Clock()), view()
    assumed.assume(placed("one", "a"), 1, snapshot)
    assumed.assume(placed("two", "b", 2), 1, snapshot)

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 1, "b": 2}
    assert used(snapshot) == {"a": 0, "b": 0}


def test_pod_that_the_view_shows_counts_once() -> None:
    assumed = ExtenderPods(Clock())
    assumed.assume(placed("one", "a"), 1, view())

    assert used(assumed.on(view("one"), _NOBODY)) == {"a": 1, "b": 0}
    assert len(assumed) == 0


def test_pod_that_is_placed_again_is_not_in_its_own_way() -> None:
    assumed, snapshot = ExtenderPods(Clock()), view()
    assumed.assume(placed("one", "a"), 1, snapshot)

    assert used(assumed.on(snapshot, PodKey("default", "one"))) == {"a": 0, "b": 0}
    assumed.assume(placed("one", "b"), 1, snapshot)
    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 0, "b": 1}


def test_pod_is_assumed_for_a_limited_time() -> None:
    clock, snapshot = Clock(), view()
    assumed = ExtenderPods(clock)
    assumed.assume(placed("one", "a"), 1, snapshot)
    clock.seconds += 6
    assumed.assume(placed("two", "b"), 1, snapshot)
    clock.seconds += 6

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 0, "b": 1}
    assert len(assumed) == 1


@pytest.mark.parametrize(("seconds", "gpus"), [(0.0, 1), (9.99, 1), (10.0, 0), (10.01, 0)])
def test_pod_is_forgotten_after_ten_seconds(seconds: float, gpus: int) -> None:
    clock, snapshot = Clock(), view()
    assumed = ExtenderPods(clock)
    assumed.assume(placed("one", "a"), 1, snapshot)
    clock.seconds += seconds

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": gpus, "b": 0}


def test_pod_that_was_bound_and_deleted_between_two_calls_is_forgotten() -> None:
    """Else the first pods of a new cluster, or after a Job was deleted, avoid nodes that nothing uses."""
    snapshot, bound = view(), RecentlyBound()
    assumed = ExtenderPods(Clock())
    assumed.assume(placed("one", "a"), 1, snapshot)
    assumed.assume(placed("two", "b"), 1, snapshot)
    bound.note(PodIdentity.of(make_pod("one").namespace("default").obj()), snapshot.generation + 1)
    assumed.note_bound(bound.taken())

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 1, "b": 1}
    later = replace(snapshot, generation=snapshot.generation + 1)
    assert used(assumed.on(later, _NOBODY)) == {"a": 0, "b": 1}


def test_pod_on_a_node_that_is_gone_is_forgotten() -> None:
    assumed = ExtenderPods(Clock())
    assumed.assume(placed("one", "a"), 1, view())

    assert used(assumed.on(Snapshot.of([node("b")]), _NOBODY)) == {"b": 0}
    assert len(assumed) == 0


def test_number_of_pods_is_limited() -> None:
    """Callers are not authenticated; the oldest pods are forgotten first."""
    assumed, snapshot = ExtenderPods(Clock()), view()
    for number in range(301):
        assumed.assume(placed(f"pod-{number}", "a" if number == 0 else "b"), 1, snapshot)

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 0, "b": 300}


def test_memory_of_the_pods_is_limited() -> None:
    mebibyte, snapshot = 1024 * 1024, view()
    assumed = ExtenderPods(Clock())
    assumed.assume(placed("oldest", "a"), 2 * mebibyte, snapshot)
    assumed.assume(placed("newer", "a", 2), 2 * mebibyte, snapshot)
    assumed.assume(placed("newest", "b"), 2 * mebibyte, snapshot)
    assumed.assume(placed("too-large", "b"), 5 * mebibyte, snapshot)

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 2, "b": 1}


def test_pod_that_is_assumed_again_does_not_count_twice() -> None:
    snapshot = view()
    assumed = ExtenderPods(Clock())
    assumed.assume(placed("other", "a"), 2 * 1024 * 1024, snapshot)
    for _ in range(5):
        assumed.assume(placed("again", "b"), 2 * 1024 * 1024, snapshot)

    assert used(assumed.on(snapshot, _NOBODY)) == {"a": 1, "b": 1}
