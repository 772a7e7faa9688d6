"""The number of missed pods in a live view follows its objects."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.builders import PodBuilder, make_pod
from tests.support.server import Clock
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.object_key import PENDING_PODS
from webhook.missed import Selection
from webhook.policy.policy_set import PolicySet
from webhook.serving import missed_pods
from webhook.serving.missed_pods import MissedPods

TRAINER = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training")
MARK = f"{DOMAIN}/placement-policy"


class World:
    """A cache, and the count of missed pods that follows it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.policies = PolicySet(policy_with())
        self.missed = MissedPods(lambda: self.policies, Selection.shipped("placement-webhook"), self.clock)
        self.cache = ClusterCache(self.missed.note)

    def apply(self, event: str, pod: PodBuilder, kind: str = PENDING_PODS) -> int:
        """Apply a watch event and return the count after it."""
        self.cache.apply(kind, event, pod.obj())
        self.missed.work()
        return self.missed.count

    def put_namespace(self, name: str, **annotations: str) -> None:
        given = {f"{DOMAIN}/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.cache.apply("Namespace", "ADDED", {"metadata": {"name": name, "annotations": given}})


def test_a_pod_is_judged_by_the_policy_of_its_namespace() -> None:
    world = World()
    shadow = policy_with(mode="shadow", namespaceSelector={"matchLabels": {"team": "a"}})
    world.policies = PolicySet.of(policy_with(), [shadow])
    for name, labels in (("team-a", {"team": "a"}), ("team-b", {})):
        world.cache.apply("Namespace", "ADDED", {"metadata": {"name": name, "labels": labels}})

    assert world.apply("ADDED", TRAINER) == 0
    assert world.apply("ADDED", make_pod("other").namespace("team-b").gpu(1).annotate(TYPE, "training")) == 1


def test_a_missed_pod_counts_until_it_is_deleted() -> None:
    world = World()

    assert world.apply("ADDED", TRAINER) == 1
    assert world.apply("MODIFIED", TRAINER.label("seen", "1")) == 1
    assert world.apply("DELETED", TRAINER) == 0


def test_pods_of_one_template_count_each() -> None:
    world = World()
    pods = [make_pod(f"trainer-{number}").namespace("team-a").annotate(TYPE, "training").gpu(1) for number in range(3)]

    assert [world.apply("ADDED", pod) for pod in pods] == [1, 2, 3]
    assert [world.apply("DELETED", pod) for pod in pods] == [2, 1, 0]


def test_a_pod_that_is_bound_counts_once() -> None:
    world = World()
    world.apply("ADDED", TRAINER)
    world.apply("DELETED", TRAINER)

    assert world.apply("ADDED", TRAINER.node_name("a"), "Pod") == 1


def test_a_pod_that_gets_the_mark_no_longer_counts() -> None:
    world = World()
    world.apply("ADDED", TRAINER)

    assert world.apply("MODIFIED", TRAINER.annotate(MARK, "default@0123456789ab")) == 0


@pytest.mark.parametrize(
    "pod",
    [
        TRAINER.annotate(MARK, "default@0123456789ab"),
        make_pod("web").namespace("team-a").gpu(1),
        TRAINER.namespace("kube-system"),
        TRAINER.namespace("placement-webhook"),
        TRAINER.annotate(f"{DOMAIN}/inject", "disabled"),
        TRAINER.owner("DaemonSet", "agent"),
    ],
)
def test_a_pod_that_was_not_missed_does_not_count(pod: PodBuilder) -> None:
    assert World().apply("ADDED", pod) == 0


def test_the_defaults_of_a_namespace_count_if_they_are_listed_after_the_pods() -> None:
    pod, world = make_pod("trainer").namespace("team-a").gpu(1), World()
    world.cache.apply(PENDING_PODS, "ADDED", pod.obj())
    world.put_namespace("team-a", workload_type="training")
    world.missed.work()

    assert world.missed.count == 1
    assert world.apply("DELETED", pod) == 0


def test_a_list_without_the_pod_ends_its_count() -> None:
    world = World()
    world.apply("ADDED", TRAINER)
    world.cache.replace(PENDING_PODS, [])

    assert world.missed.count == 0


def test_templates_are_evaluated_for_some_milliseconds_at_a_time() -> None:
    world = World()
    for number in range(3):
        world.cache.apply(
            PENDING_PODS, "ADDED", make_pod(f"p{number}").annotate(TYPE, "training").gpu(number + 1).obj()
        )
    ticks = iter((0.0, 0.0, 0.004, 0.006))
    world.missed._monotonic_seconds = lambda: next(ticks)
    world.missed.work()

    assert world.missed.count == 2


def test_templates_beyond_the_bound_are_evaluated_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_pods, "_MOST_BYTES", 0)
    world = World()
    world.cache.apply(PENDING_PODS, "ADDED", TRAINER.obj())

    assert world.missed.count == 1


def test_a_malformed_pod_does_not_count() -> None:
    world, malformed = World(), TRAINER.obj()
    broken: dict[str, Any] = {**malformed, "spec": {"containers": 1, "tolerations": 1}}
    world.cache.apply(PENDING_PODS, "ADDED", broken)
    world.missed.work()

    assert world.missed.count == 0
