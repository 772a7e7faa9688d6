"""The number of missed pods in a live view follows its objects, the policies in force and the registered webhook."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.server import Clock
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.object_key import Key
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.serving.observed import missed_pods
from webhook.serving.observed.missed_pods import MissedPods

TRAINER = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training")
MARK = f"{DOMAIN}/placement-policy"
SHIPPED = Selection.shipped("placement-webhook")
TEAM_A = {"matchLabels": {"team": "a"}}


class World(ClusterFollower):
    """A cache, and the count of missed pods that follows it. `lists_again` counts the requests to list all pods."""

    def __init__(self, default: Policy | None = None) -> None:
        self.clock = Clock()
        self.policies = PolicySet(default or policy_with())
        self.is_policy_known = True
        self.lists_again = 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.missed = MissedPods(lambda: self.policies, self.clock, lambda: self.is_policy_known)
        self.missed.select(SHIPPED)
        self.cache = ClusterCache(self)

    def object_changed(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Count it if it is a missed pod."""
        self.missed.note(kind, key, content)

    def work(self) -> None:
        """Do a turn of the work, and list all pods if that is asked for."""
        if self.missed.work():
            self.lists_again += 1
            self.cache.replace("Pod", list(self.pods.values()))

    def count(self) -> int:
        """Return the count after the work that is left, and the list that is asked for."""
        for _ in range(2):
            self.work()
        return self.missed.count

    def apply(self, event: str, pod: PodBuilder) -> int:
        """Apply a watch event and return the count after it."""
        self.note(event, pod.obj())
        return self.count()

    def note(self, event: str, pod: dict[str, Any]) -> None:
        """Apply a watch event."""
        self.pods[pod["metadata"]["name"]] = pod
        if event == "DELETED":
            del self.pods[pod["metadata"]["name"]]
        self.cache.apply("Pod", event, pod)

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
            world.note("ADDED", TRAINER.node_name("node").obj())
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
    missed.note("Pod", Key("team-a", "trainer"), TRAINER.obj())
    missed.work()
    assert missed.count == 0


def test_a_changed_policy_counts_the_pods_again_at_most_every_ten_minutes() -> None:
    world = World(policy_with(mode="shadow"))
    assert world.apply("ADDED", TRAINER) == 0

    world.policies = PolicySet(policy_with())
    assert world.count() == 1
    world.policies = PolicySet(policy_with(mode="shadow"))
    assert (world.count(), world.lists_again) == (1, 1)
    world.clock.seconds += 600
    assert (world.count(), world.lists_again) == (0, 2)
    world.clock.seconds += 600
    assert (world.count(), world.lists_again) == (0, 2)


def test_a_changed_canary_counts_the_owners_that_it_adds() -> None:
    pods = [make_pod(f"trainer-{number}").namespace("team-a").gpu(1).annotate(TYPE, "training") for number in range(40)]
    world = World(policy_with(canaryPercent=0))
    for each in pods:
        assert world.apply("ADDED", each) == 0

    counts = []
    for percent in (20, 60, 100, 20):
        world.policies = PolicySet(policy_with(canaryPercent=percent))
        world.clock.seconds += 600
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
    assert (world.count(), world.lists_again) == (1, 1)
    world.clock.seconds += 600
    world.put_namespace("team-a")
    assert (world.count(), world.lists_again) == (0, 2)


def test_changes_of_a_namespace_that_no_pod_is_judged_by_list_no_pods() -> None:
    world = World()
    world.put_namespace("team-a")
    world.apply("ADDED", TRAINER)
    world.put_namespace("team-a", {"owner": "b"})
    world.put_namespace("team-b", workload_type="training")
    world.cache.apply("Namespace", "DELETED", {"metadata": {"name": "team-b"}})

    assert (world.count(), world.lists_again) == (1, 0)


def test_pods_are_listed_again_at_most_every_ten_minutes() -> None:
    world = World()
    for minutes in range(21):
        world.put_namespace("team-a", workload_type="training")
        world.work()
        world.put_namespace("team-a")
        world.work()
        assert world.lists_again <= 1 + minutes // 10
        world.clock.seconds += 60
    assert world.lists_again == 3


def test_pods_of_a_namespace_that_the_registered_webhook_excludes_do_not_count() -> None:
    world = World()
    world.put_namespace("team-a", {"placement": "off"})
    assert world.apply("ADDED", TRAINER) == 1

    world.missed.select(Selection.of({"namespaceSelector": {"matchLabels": {"placement": "on"}}}))
    assert world.count() == 0
    world.put_namespace("team-a", {"placement": "on"})
    world.clock.seconds += 600
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
    assert (world.count(), world.lists_again) == (0, 1)


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
    ("event", "pod"), [("DELETED", TRAINER), ("MODIFIED", TRAINER.annotate(MARK, "default@0123456789ab"))]
)
def test_a_pod_that_changes_before_its_turn_is_judged_as_it_is_then(event: str, pod: PodBuilder) -> None:
    world = World()
    world.note("ADDED", TRAINER.obj())

    assert world.apply(event, pod) == 0


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
    world.note("ADDED", pod.obj())
    world.put_namespace("team-a", workload_type="training")

    assert (world.count(), world.lists_again) == (1, 1)
    assert world.apply("DELETED", pod) == 0


def test_a_list_without_the_pod_ends_its_count() -> None:
    world = World()
    world.apply("ADDED", TRAINER)
    world.pods.clear()
    world.cache.replace("Pod", [])

    assert world.missed.count == 0


def test_pods_are_judged_for_some_milliseconds_at_a_time() -> None:
    world = World()
    for number in range(3):
        world.note("ADDED", make_pod(f"p{number}").annotate(TYPE, "training").gpu(number + 1).obj())
    ticks = iter((0.0, 0.0, 0.004, 0.006))
    world.missed._monotonic_seconds = lambda: next(ticks)
    world.work()

    assert world.missed.count == 2


def test_pods_beyond_the_bound_are_judged_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_pods, "_MOST_WAITING_BYTES", 1)
    world = World()
    world.work()
    for name in ("a", "b", "c"):
        world.note("ADDED", make_pod(name).annotate(TYPE, "training").gpu(1).obj())

    assert (world.missed.count, world.lists_again) == (2, 0)
    assert (world.count(), world.lists_again) == (3, 0)


@pytest.mark.slow
def test_pods_that_wait_to_be_judged_take_bounded_memory() -> None:
    world = World()
    world.is_policy_known = False
    for number in range(45):
        pod = make_pod(f"p-{number}").annotate(TYPE, "training").gpu(1).obj()
        pod["spec"]["containers"][0]["env"] = [{"name": f"E{each}", "value": "x" * 40} for each in range(10_000)]
        world.missed.note("Pod", Key("default", f"p-{number}"), pod)

    assert sum(map(len, world.missed._waiting.values())) < 10 * 1024 * 1024


def test_names_of_namespaces_that_are_gone_take_bounded_memory() -> None:
    world = World()
    for number in range(3000):
        world.missed.note("Pod", Key(f"ci-{number}", "p"), make_pod("p").obj())

    assert len(world.missed._unknown) <= 1000


def test_pods_beyond_the_bound_are_listed_again_if_they_came_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_pods, "_MOST_WAITING_BYTES", 1)
    world = World()
    world.is_policy_known = False
    for name in ("a", "b"):
        world.note("ADDED", make_pod(name).annotate(TYPE, "training").gpu(1).obj())
    assert (world.count(), world.lists_again) == (0, 0)

    world.is_policy_known = True
    assert (world.count(), world.lists_again) == (2, 1)


def test_pods_that_came_before_their_namespace_are_listed_again_for_its_key_domain() -> None:
    world = World()
    other = "placement.example.org"
    world.policies = PolicySet.of(policy_with(), [policy_with(keyDomain=other, namespaceSelector=TEAM_A)])
    both = TRAINER.annotate(MARK, "default@0123456789ab").annotate(f"{other}/workload-type", "training")
    assert world.apply("ADDED", both) == 0
    world.clock.seconds += 600
    world.put_namespace("team-a", {"team": "a"})

    assert world.count() == 1


def test_pods_that_came_before_the_policies_are_listed_again_for_their_key_domain() -> None:
    other = "placement.example.org"
    world = World()
    world.is_policy_known = False
    pod = make_pod("trainer").namespace("team-a").gpu(1).annotate(f"{other}/workload-type", "training")
    assert world.apply("ADDED", pod) == 0

    world.policies, world.is_policy_known = PolicySet(policy_with(keyDomain=other)), True

    assert (world.count(), world.lists_again) == (1, 1)


def test_a_malformed_pod_does_not_count() -> None:
    world, malformed = World(), TRAINER.obj()
    broken: dict[str, Any] = {**malformed, "spec": {"containers": 1, "tolerations": 1}}
    world.note("ADDED", broken)

    assert world.count() == 0


def test_a_namespace_that_is_created_again_has_no_defaults_of_the_one_before() -> None:
    world = World()
    world.put_namespace("team-a", workload_type="training")
    world.missed.note("Namespace", Key("", "team-a"), None)

    assert world.apply("ADDED", make_pod("trainer").namespace("team-a").gpu(1)) == 0
