"""The count of missed pods is that of the final state, in whatever order objects, policies and selectors arrived."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.server import Clock
from webhook.admission.missed import Scope, missed_pod
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.object_key import Key
from webhook.policy.policy_set import PolicySet
from webhook.serving.observed import missed_pods
from webhook.serving.observed.missed_pods import MissedPods

OTHER_DOMAIN = "placement.example.org"
OTHER_TYPE = f"{OTHER_DOMAIN}/workload-type"
TEAM_A = {"matchLabels": {"team": "a"}}
NOT_TEAM_A = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
POLICIES = [
    PolicySet(policy_with()),
    PolicySet(policy_with(mode="shadow")),
    PolicySet(policy_with(canaryPercent=50)),
    PolicySet(policy_with(keyDomain=OTHER_DOMAIN)),
    PolicySet(policy_with(exemptions=[{"reason": "tests", "podLabels": {"matchLabels": {"exempt": "yes"}}}])),
    PolicySet.of(policy_with(), [policy_with(mode="shadow", namespaceSelector=TEAM_A)]),
    PolicySet.of(policy_with(mode="shadow"), [policy_with(namespaceSelector=NOT_TEAM_A)]),
    PolicySet.of(policy_with(), [policy_with(keyDomain=OTHER_DOMAIN, namespaceSelector=TEAM_A)]),
]
SELECTIONS = [
    Selection.shipped("placement-webhook"),
    Selection.of({"namespaceSelector": TEAM_A}),
    Selection.of({"objectSelector": {"matchLabels": {"exempt": "yes"}}}),
    Selection.of({"matchConditions": [{"name": "not-a", "expression": "object.metadata.name != 'a'"}]}),
]
SCOPES = [
    Scope(annotations, labels)
    for annotations in ({}, {TYPE: "training"}, {OTHER_TYPE: "inference"})
    for labels in ({}, {"team": "a"})
]
_POD = make_pod().gpu(1)
SHAPES = [
    _POD,
    _POD.annotate(TYPE, "training"),
    _POD.annotate(TYPE, "training").label("exempt", "yes"),
    _POD.annotate(TYPE, "training").annotate(f"{DOMAIN}/gang", "g"),
    _POD.annotate(TYPE, "training").annotate(f"{DOMAIN}/placement-policy", "default@0123456789ab"),
    _POD.annotate(TYPE, "training").annotate(OTHER_TYPE, "inference"),
    _POD.annotate(TYPE, "inference").owner("ReplicaSet", "web", uid="7"),
    _POD.annotate(TYPE, "unknown"),
    _POD.annotate(OTHER_TYPE, "training").annotate(f"{OTHER_DOMAIN}/placement-policy", "default@0123456789ab"),
    _POD.annotate(TYPE, "training").deletion("2026-03-01T09:00:00Z"),
]
NAMESPACES = ("team-a", "team-b")

_namespaces, _pod_names = st.sampled_from(NAMESPACES), st.sampled_from("abcd")
EVENTS = st.one_of(
    st.tuples(st.just("namespace"), _namespaces, st.sampled_from(SCOPES)),
    st.tuples(st.just("no namespace"), _namespaces),
    st.tuples(st.just("pod"), _namespaces, _pod_names, st.sampled_from(SHAPES)),
    st.tuples(st.just("pod"), _namespaces, _pod_names, st.sampled_from(SHAPES[1:4])),
    st.tuples(st.just("no pod"), _namespaces, _pod_names),
    st.tuples(st.just("policies"), st.sampled_from(POLICIES)),
    st.tuples(st.just("selection"), st.sampled_from(SELECTIONS)),
    st.tuples(st.just("work")),
    st.tuples(st.just("list")),
)


class _Ticking(Clock):
    """A clock that gives each turn time for one or two steps."""

    def __call__(self) -> float:
        self.seconds += 0.002
        return self.seconds


class World:
    """A cluster and the count that follows it; each event is a method with its name."""

    def __init__(self) -> None:
        self.policies, self.selection = POLICIES[0], SELECTIONS[0]
        self.scopes: dict[str, Scope] = {}
        self.pods: dict[Key, dict[str, Any]] = {}
        self.clock = _Ticking()
        self.is_to_list, self.is_policy_known = False, False
        self.missed = MissedPods(lambda: self.policies, self.clock, lambda: self.is_policy_known)

    def apply(self, event: str, *arguments: Any) -> None:
        getattr(self, f"_{event.replace(' ', '_')}")(*arguments)

    def _namespace(self, name: str, scope: Scope) -> None:
        self.scopes[name] = scope
        metadata = {"name": name, "annotations": scope.annotations, "labels": scope.labels}
        self.missed.note("Namespace", Key("", name), {"metadata": metadata})

    def _no_namespace(self, name: str) -> None:
        """Delete a namespace. The API server has deleted its pods before, but the watch of them can be later."""
        self.scopes.pop(name, None)
        self.missed.note("Namespace", Key("", name), None)
        for key in [key for key in self.pods if key.namespace == name]:
            self._no_pod(*key)

    def _pod(self, namespace: str, name: str, shape: PodBuilder) -> None:
        key = Key(namespace, name)
        pod = shape.namespace(namespace).obj()
        pod["metadata"]["name"] = name
        self.pods[key] = pod
        self.missed.note("Pod", key, pod)

    def _no_pod(self, namespace: str, name: str) -> None:
        self.pods.pop(Key(namespace, name), None)
        self.missed.note("Pod", Key(namespace, name), None)

    def _policies(self, policies: PolicySet) -> None:
        self.policies = policies

    def _selection(self, selection: Selection) -> None:
        self.selection = selection
        self.missed.select(selection)

    def _work(self) -> None:
        self.is_policy_known = True
        self.is_to_list |= self.missed.work()

    def _list(self) -> None:
        if self.is_to_list:
            self.is_to_list = False
            for key, pod in self.pods.items():
                self.missed.note("Pod", key, pod)

    def settle(self) -> None:
        """Work until nothing is left, some lists later."""
        self._selection(self.selection)
        for _ in range(200):
            self._work()
            self._list()
            self.clock.seconds += 60

    def wanted(self) -> list[str]:
        """Return the pods that are missed, one by one."""
        found = (missed_pod(pod, self.policies, self.selection, self.scopes) for pod in self.pods.values())
        return [f"{each.namespace}/{each.name}" for each in found if each is not None]


@pytest.mark.parametrize("most_waiting", [1_000_000, 1, 0])
@settings(max_examples=examples(100), deadline=None)
@given(events=st.lists(EVENTS, min_size=8, max_size=40))
def test_the_count_is_that_of_the_final_state(most_waiting: int, events: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(missed_pods, "_MOST_WAITING_BYTES", most_waiting)
        world = World()
        for event in events:
            world.apply(*event)
        world.settle()

    assert world.missed.count == len(world.wanted()), world.wanted()


def test_the_pods_and_policies_of_the_events_differ_in_what_is_missed() -> None:
    """A change of each policy or selection changes the count of some pods, so the rule above is no tautology."""
    counts = set()
    for policies in POLICIES:
        for selection in SELECTIONS:
            world = World()
            for number, shape in enumerate(SHAPES):
                world.apply("pod", NAMESPACES[number % 2], "abcdefghij"[number], shape)
            world.apply("namespace", "team-a", SCOPES[3])
            world.policies, world.selection = policies, selection
            counts.add(len(world.wanted()))

    assert {0, 1, 3, 4, 5} <= counts
