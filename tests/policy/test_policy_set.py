"""Selection among several policies by the labels of the namespace."""

from typing import Any

import pytest

from tests.policy.several import named, with_unknown
from tests.support.admission import DOMAIN, TYPE, make_request
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, arrival, make_work_budget, review_bytes
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.work_budget import WorkBudget

SELECTOR = {"matchLabels": {"team": "a"}}
EVERY: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("others", "labels", "chosen"),
    [
        pytest.param([], {"team": "a"}, "default", id="no other policy"),
        pytest.param([named("a", SELECTOR)], {"team": "a"}, "a", id="it matches"),
        pytest.param([named("a", SELECTOR)], {"team": "b"}, "default", id="none matches"),
        pytest.param([named("a", SELECTOR)], {}, "default", id="unknown labels"),
        pytest.param([named("a", EVERY), named("b", SELECTOR, 1)], {"team": "a"}, "b", id="by priority"),
        pytest.param([named("b", EVERY), named("a", SELECTOR)], {"team": "a"}, "a", id="equal priority: by name"),
        pytest.param([named("a", EVERY, -1), named("b", EVERY)], {}, "b", id="a negative priority"),
        pytest.param([named("a")], {"team": "a"}, "default", id="no selector: selects nothing"),
        pytest.param(
            [named("a", {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}})], {}, "a", id="by name of namespace"
        ),
        pytest.param(
            [named("a", {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]})],
            {"team": "b"},
            "default",
            id="an expression",
        ),
    ],
)
def test_one_policy_is_in_force_for_a_namespace(others: list[Policy], labels: dict[str, str], chosen: str) -> None:
    for given in (others, others[::-1]):
        assert PolicySet.of(named("default"), given).of_namespace("team-a", labels).name == chosen


def test_a_namespace_with_unknown_labels_is_selected_by_its_name_alone() -> None:
    excluding = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    by_name = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    found = PolicySet.of(named("default"), [named("a", excluding, 2), named("b", by_name, 1), named("c", EVERY)])

    assert found.of_namespace("team-a", {}).name == "a"
    assert found.of_namespace("team-a", None).name == "b"
    assert found.of_namespace("team-b", None).name == "c"


@pytest.mark.parametrize(
    ("selectors", "needs_labels"),
    [
        ([], False),
        ([None, EVERY], False),
        ([{"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}], False),
        ([EVERY, SELECTOR], True),
        ([{"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}], True),
    ],
)
def test_selection_by_other_labels_than_the_name_needs_labels(
    selectors: list[dict[str, Any] | None], needs_labels: bool
) -> None:
    others = [named(f"p{index}", selector) for index, selector in enumerate(selectors)]
    assert PolicySet.of(named("default"), others).selects_by_labels is needs_labels


def test_objects_of_the_cluster_replace_policies_of_the_file_with_their_names() -> None:
    file = PolicySet.of(named("default"), [named("a", SELECTOR), named("b", SELECTOR)])
    objects = [named("a", SELECTOR, 7), named("default", priority=1)]

    assert [*file.with_objects(objects)] == [objects[1], objects[0], file.others[1]]


def test_a_policy_that_can_never_be_in_force_is_a_conflict() -> None:
    found = PolicySet.of(named("default"), [named("b", SELECTOR), named("a", SELECTOR), named("c", SELECTOR, 1)])
    assert list(found.conflicts()) == ["b"]


def test_the_selection_does_not_change_the_revision() -> None:
    assert named("a", SELECTOR, 5).revision == named("a").revision


def test_a_pod_is_judged_by_the_policy_of_its_namespace() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}
    view = ClusterView(snapshot_from_documents([Document("cluster", namespace)]), None)
    policies = PolicySet.of(named("default"), [named("a", SELECTOR)])
    world = World(cluster=view)
    answering = world.admissions()
    for name in ("team-a", "team-b", "team-a"):
        body = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj(), namespace=name)
        budget = WorkBudget(None, 100, monotonic_seconds=world.clock, cpu_seconds=lambda: 0.0)
        decision = answering.admissions.decide(answering.decider, body, policies, view, budget)
        answering.admissions.finish(decision, arrival(world.now()))
    assert [(each.policy.name if each.policy else "") for each in world.records] == ["a", "default", "a"]
    patches = [str(each.patch) for each in world.records]
    assert [f"a@{policies.default.revision}" in each for each in patches] == [True, False, True]


def test_equal_pods_of_policies_that_differ_in_name_share_no_decision() -> None:
    cache = DecisionCache()
    pod = make_pod("trainer").annotate(TYPE, "training").obj()
    budget = WorkBudget(None, 100, monotonic_seconds=lambda: 0.0, cpu_seconds=lambda: 0.0)
    one = named("one")
    policies = (one, named("two"), one)
    found = [cache.decide(make_request(pod), each, None, budget).answer for each in policies]
    assert found == [DecisionCache().decide(make_request(pod), each, None, budget).answer for each in policies]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ("priority: 1000001", "must be in [-1000000, 1000000]"),
        ("namespaceSelector: {matchLabels: {'a b': c}}", "spec.namespaceSelector.matchLabels"),
    ],
)
def test_an_invalid_selection_is_rejected(field: str, error: str) -> None:
    head = f"apiVersion: placement.{DOMAIN}/v1alpha1\nkind: PlacementPolicy"
    with pytest.raises(InvalidInput) as caught:
        parse_policy(f"{head}\nspec:\n  {field}\n", "policy.yaml")
    assert error in str(caught.value)


def test_setting_has_no_effect_where_labels_choose_no_policy() -> None:
    by_name = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    policies = with_unknown("deny", by_name)
    assert policies.of_namespace("new", None) is policies.default
    assert policies.of_namespace("team-a", None).name == "a"


def test_decision_on_an_unknown_namespace_is_not_kept_for_the_known_one() -> None:
    policies, cache = with_unknown("deny", SELECTOR), DecisionCache()
    request = make_request(make_pod("trainer").annotate(TYPE, "training").obj(), namespace="new")
    labels_seen: list[dict[str, str] | None] = [None, {}, None]
    outcomes = [
        cache.decide(request, policies.of_namespace("new", labels), None, make_work_budget()).counted.outcome
        for labels in labels_seen
    ]
    assert outcomes == ["Denied", "Patched", "Denied"]
