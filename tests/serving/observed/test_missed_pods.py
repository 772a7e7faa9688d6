"""The number of missed pods in a live view follows its objects, the policies in force and the registered webhook."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.server import Clock
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.serving.observed import missed_pods
from webhook.serving.observed.missed_pods import MissedPods

TRAINER = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training")
MARK = f"{DOMAIN}/placement-policy"
SHIPPED = Selection.shipped("placement-webhook")
TEAM_A = {"matchLabels": {"team": "a"}}


class World:
    """A cache, and the count of missed pods that follows it. `lists_again` counts the requests to list all pods."""

    def __init__(self, default: Policy | None = None) -> None:
        self.clock = Clock()
        self.policies = PolicySet(default or policy_with())
        self.is_policy_known = True
        self.lists_again = 0
        self.missed = MissedPods(lambda: self.policies, self.clock, lambda: self.is_policy_known, self._list_again)
        self.missed.select(SHIPPED)
        self.cache = ClusterCache(self.missed.note)

    def _list_again(self) -> None:
        self.lists_again += 1

    def count(self) -> int:
        """Return the count after the work that is left."""
        self.missed.work()
        return self.missed.count

    def apply(self, event: str, pod: PodBuilder) -> int:
        """Apply a watch event and return the count after it."""
        self.cache.apply("Pod", event, pod.obj())
        return self.count()

    def put_namespace(self, name: str, labels: dict[str, str] | None = None, **annotations: str) -> None:
        given = {f"{DOMAIN}/{key.replace('_', '-')}": value for key, value in annotations.items()}
        metadata = {"name": name, "labels": labels or {}, "annotations": given}
        self.cache.apply("Namespace", "ADDED", {"metadata": metadata})


def test_a_pod_is_judged_by_the_policy_of_its_namespace() -> None:
    world = World()
    world.policies = PolicySet.of(policy_with(), [policy_with(mode="shadow", namespaceSelector=TEAM_A)])
    world.put_namespace("team-a", {"team": "a"})
    world.put_namespace("team-b")

    assert world.apply("ADDED", TRAINER) == 0
    assert world.apply("ADDED", make_pod("other").namespace("team-b").gpu(1).annotate(TYPE, "training")) == 1


ORDERS = [
    pytest.param(order, id=", ".join(order))
    for order in (
        ("namespaces", "pods", "policies"),
        ("pods", "namespaces", "policies"),
        ("namespaces", "policies", "pods"),
        ("pods", "policies", "namespaces"),
        ("policies", "pods", "namespaces"),
        ("policies", "namespaces", "pods"),
    )
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("default", "of_team", "missed"), [("enforce", "shadow", 0), ("shadow", "enforce", 1)])
def test_the_order_of_the_first_lists_does_not_matter(
    order: Sequence[str], default: str, of_team: str, missed: int
) -> None:
    world = World(policy_with(mode=default))
    world.is_policy_known = False
    for each in order:
        if each == "namespaces":
            world.put_namespace("team-a", {"team": "a"})
        elif each == "pods":
            world.cache.apply("Pod", "ADDED", TRAINER.node_name("node").obj())
        else:
            others = [policy_with(mode=of_team, namespaceSelector=TEAM_A)]
            world.policies, world.is_policy_known = PolicySet.of(world.policies.default, others), True
        assert world.missed.count == 0

    assert world.count() == missed


def test_no_pod_counts_before_the_policies_and_the_webhook_are_known() -> None:
    world = World()
    world.is_policy_known = False
    assert world.apply("ADDED", TRAINER) == 0

    missed = MissedPods(lambda: world.policies, world.clock)
    ClusterCache(missed.note).apply("Pod", "ADDED", TRAINER.obj())
    missed.work()
    assert missed.count == 0


def test_a_changed_policy_counts_the_pods_again() -> None:
    world = World(policy_with(mode="shadow"))
    assert world.apply("ADDED", TRAINER) == 0

    world.policies = PolicySet(policy_with())
    assert world.count() == 1
    world.policies = PolicySet(policy_with(mode="shadow"))
    assert world.count() == 0


def test_a_changed_canary_counts_the_owners_that_it_adds() -> None:
    pods = [make_pod(f"trainer-{number}").namespace("team-a").gpu(1).annotate(TYPE, "training") for number in range(40)]
    world = World(policy_with(canaryPercent=0))
    for each in pods:
        assert world.apply("ADDED", each) == 0

    counts = []
    for percent in (20, 60, 100, 20):
        world.policies = PolicySet(policy_with(canaryPercent=percent))
        counts.append(world.count())
    assert 0 < counts[0] < counts[1] < counts[2] == 40
    assert counts[3] == counts[0]


def test_changed_labels_of_a_namespace_count_its_pods_again() -> None:
    world = World()
    world.policies = PolicySet.of(policy_with(), [policy_with(mode="shadow", namespaceSelector=TEAM_A)])
    world.put_namespace("team-a")
    assert world.apply("ADDED", TRAINER) == 1

    world.put_namespace("team-a", {"team": "a"})
    assert world.count() == 0


def test_changed_defaults_of_a_namespace_list_the_pods_again() -> None:
    """Pods without a workload type are not kept."""
    world, pod = World(), make_pod("trainer").namespace("team-a").gpu(1)
    world.put_namespace("team-a")
    assert (world.apply("ADDED", pod), world.lists_again) == (0, 0)

    world.put_namespace("team-a", workload_type="training")
    assert (world.count(), world.lists_again) == (0, 1)
    assert world.apply("ADDED", pod) == 1
    world.put_namespace("team-a")
    assert (world.count(), world.lists_again) == (0, 1)


def test_pods_are_listed_again_at_most_every_ten_minutes() -> None:
    world = World()
    for minutes in range(21):
        world.put_namespace("team-a", workload_type="training")
        world.missed.work()
        world.put_namespace("team-a")
        world.missed.work()
        assert world.lists_again <= 1 + minutes // 10
        world.clock.seconds += 60
    assert world.lists_again == 2


def test_pods_of_a_namespace_that_the_registered_webhook_excludes_do_not_count() -> None:
    world = World()
    world.put_namespace("team-a", {"placement": "off"})
    assert world.apply("ADDED", TRAINER) == 1

    world.missed.select(Selection.of({"namespaceSelector": {"matchLabels": {"placement": "on"}}}))
    assert world.count() == 0
    world.put_namespace("team-a", {"placement": "on"})
    assert world.count() == 1


def test_pods_that_the_object_selector_excludes_do_not_count() -> None:
    world = World()
    world.missed.select(Selection.of({"objectSelector": {"matchLabels": {"placement": "on"}}}))

    assert world.apply("ADDED", TRAINER) == 0
    assert world.apply("ADDED", make_pod("on").annotate(TYPE, "training").label("placement", "on")) == 1


def test_changed_conditions_list_the_pods_again() -> None:
    world = World()
    assert world.apply("ADDED", TRAINER) == 1

    condition = {"name": "not-the-trainer", "expression": "object.metadata.name != 'trainer'"}
    world.missed.select(Selection.of({"matchConditions": [condition]}))
    assert (world.count(), world.lists_again) == (1, 1)
    assert world.apply("ADDED", TRAINER) == 0


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

    assert world.apply("MODIFIED", TRAINER.node_name("a")) == 1


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
    world.cache.apply("Pod", "ADDED", pod.obj())
    world.put_namespace("team-a", workload_type="training")
    world.missed.work()

    assert world.missed.count == 1
    assert world.apply("DELETED", pod) == 0


def test_a_list_without_the_pod_ends_its_count() -> None:
    world = World()
    world.apply("ADDED", TRAINER)
    world.cache.replace("Pod", [])

    assert world.missed.count == 0


def test_templates_are_evaluated_for_some_milliseconds_at_a_time() -> None:
    world = World()
    for number in range(3):
        world.cache.apply("Pod", "ADDED", make_pod(f"p{number}").annotate(TYPE, "training").gpu(number + 1).obj())
    ticks = iter((0.0, 0.0, 0.004, 0.006))
    world.missed._monotonic_seconds = lambda: next(ticks)
    world.missed.work()

    assert world.missed.count == 2


def test_a_template_counts_by_its_last_evaluation_until_the_next() -> None:
    world = World()
    for number in range(3):
        world.apply("ADDED", make_pod(f"p{number}").annotate(TYPE, "training").gpu(number + 1))
    world.policies = PolicySet(policy_with(mode="shadow"))
    counts = []
    for _ in range(5):
        world.missed._monotonic_seconds = partial(next, iter((0.0, 0.0, 0.006)))
        world.missed.work()
        counts.append(world.missed.count)

    # The first turn chooses the policy of the namespace.
    assert counts == [3, 2, 1, 0, 0]


def test_templates_beyond_the_bound_are_evaluated_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_pods, "_MOST_BYTES", 0)
    world = World()
    world.missed.work()
    world.cache.apply("Pod", "ADDED", TRAINER.obj())
    assert (world.missed.count, world.lists_again) == (1, 0)

    world.policies = PolicySet(policy_with(mode="shadow"))
    assert (world.count(), world.lists_again) == (1, 1)
    assert world.apply("MODIFIED", TRAINER) == 0


@pytest.mark.parametrize("more_bytes", [0, 1])
def test_templates_of_16_mib_are_kept(more_bytes: int) -> None:
    """Without its content, a template counts as before until its pods are listed again."""
    small, world = World(), World()
    small.apply("ADDED", TRAINER.annotate("padding", ""))
    world.missed.work()
    padding = "x" * (16 * 1024 * 1024 - small.missed._kept_bytes + more_bytes)
    assert world.apply("ADDED", TRAINER.annotate("padding", padding)) == 1

    world.policies = PolicySet(policy_with(mode="shadow"))

    assert (world.count(), world.lists_again) == (more_bytes, more_bytes)


def test_the_bound_is_for_the_templates_that_have_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.apply("ADDED", TRAINER)
    monkeypatch.setattr(missed_pods, "_MOST_BYTES", world.missed._kept_bytes)
    world.apply("DELETED", TRAINER)
    world.apply("ADDED", TRAINER)
    world.policies = PolicySet(policy_with(mode="shadow"))

    assert (world.count(), world.lists_again) == (0, 0)


@pytest.mark.parametrize("pod", [TRAINER, TRAINER.annotate(MARK, "default@0123456789ab")], ids=["kept", "marked"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_namespace_without_pods_is_forgotten_if_it_is_gone_or_never_came(pod: PodBuilder, is_known: bool) -> None:
    """The watch of pods can be later than that of namespaces."""
    world = World()
    if is_known:
        world.put_namespace("team-a")
        world.cache.apply("Namespace", "DELETED", {"metadata": {"name": "team-a"}})
    world.apply("ADDED", pod)
    assert world.missed._namespaces.keys() == {"team-a"}

    world.apply("DELETED", pod)
    assert world.missed._namespaces == {}


def test_pods_that_came_before_their_namespace_are_listed_again_for_its_key_domain() -> None:
    """Also if another pod, which was kept, has ended meanwhile."""
    world = World()
    other = "placement.example.org"
    world.policies = PolicySet.of(policy_with(), [policy_with(keyDomain=other, namespaceSelector=TEAM_A)])
    both = TRAINER.annotate(MARK, "default@0123456789ab").annotate(f"{other}/workload-type", "training")
    world.apply("ADDED", both)
    for event in ("ADDED", "DELETED"):
        world.apply(event, make_pod("kept").namespace("team-a").gpu(1).annotate(TYPE, "training"))
    world.put_namespace("team-a", {"team": "a"})

    assert (world.count(), world.lists_again) == (0, 1)
    assert world.apply("MODIFIED", both) == 1


def test_a_malformed_pod_does_not_count() -> None:
    world, malformed = World(), TRAINER.obj()
    broken: dict[str, Any] = {**malformed, "spec": {"containers": 1, "tolerations": 1}}
    world.cache.apply("Pod", "ADDED", broken)
    world.missed.work()

    assert world.missed.count == 0
