"""What is read of a PodDisruptionBudget."""

from typing import Any

import pytest
import yaml

from tests.support.objects.builders import make_node_object
from tests.support.objects.moves import budget
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.documents.documents import Document, parse
from webhook.documents.field import InvalidInput
from webhook.kube.selectors import exact_selector


def budgets_in(*objects: dict[str, Any]) -> tuple[DisruptionBudget, ...] | None:
    return snapshot_from_documents([Document("f", each) for each in objects]).disruption_budgets


def with_status(**status: Any) -> dict[str, Any]:
    made = budget("web", 2)
    return {**made, "status": {**made["status"], **status}}


def test_every_field_is_read() -> None:
    (found,) = budgets_in(with_status(disruptedPods={"web-1": "2026-01-01T00:00:00Z"}, currentHealthy=5)) or ()

    assert found == DisruptionBudget(
        "team-a", "web", exact_selector({"app": "app"}), 2, frozenset(("web-1",)), is_stale=False, healthy=5, desired=0
    )


def test_a_status_older_than_the_spec_is_stale() -> None:
    (found,) = budgets_in(with_status(observedGeneration=0)) or ()

    assert (found.is_stale, found.disruptions_allowed, found.allowed) == (True, 2, 0)


@pytest.mark.parametrize(
    ("selector", "selects"),
    [(None, False), ({}, True), ({"matchLabels": {"app": "web"}}, True), ({"matchLabels": {"app": "db"}}, False)],
)
def test_an_empty_selector_selects_all_pods_and_a_null_one_none(selector: Any, selects: bool) -> None:
    assert DisruptionBudget.of(budget("web", 1, selector=selector)).selects({"app": "web"}) is selects


def test_a_file_without_budgets_does_not_know_them() -> None:
    empty = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": []}

    assert budgets_in(make_node_object("a")) is None
    assert budgets_in(make_node_object("a"), empty) == ()
    assert budgets_in({**budget("web", 1), "apiVersion": "policy/v1beta1"}) is None


def test_budgets_are_read_from_yaml_and_lists() -> None:
    listed = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": [budget("web", 1), budget("b", 2)]}

    found = snapshot_from_documents(parse(yaml.safe_dump(listed), "f")).disruption_budgets or ()

    assert [(each.name, each.disruptions_allowed) for each in found] == [("web", 1), ("b", 2)]


def test_every_malformed_field_is_an_error_that_names_the_object() -> None:
    malformed = with_status(disruptionsAllowed="many", disruptedPods=["web-1"])

    with pytest.raises(InvalidInput) as caught:
        budgets_in({**malformed, "spec": {"selector": "web"}})

    place = "f: PodDisruptionBudget team-a/web"
    assert [error.path for error in caught.value.errors] == [
        f"{place}: spec.selector",
        f"{place}: status.disruptionsAllowed",
        f"{place}: status.disruptedPods",
    ]


@pytest.mark.parametrize(
    ("healthy", "desired", "policy", "counts"),
    [
        pytest.param(2, 2, "", False, id="enough pods are healthy without it"),
        pytest.param(3, 2, "", False, id="more than enough are"),
        pytest.param(1, 2, "", True, id="too few are"),
        pytest.param(0, 0, "", True, id="none has to be"),
        pytest.param(1, 2, "AlwaysAllow", False, id="it is always allowed"),
        pytest.param(1, 2, "IfHealthyBudget", True, id="as by default"),
    ],
)
def test_eviction_of_a_pod_that_is_not_ready_counts_unless_the_others_are_enough(
    healthy: int, desired: int, policy: str, *, counts: bool
) -> None:
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    budget = DisruptionBudget.of(
        {"spec": spec, "status": {"currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": 1}}
    )

    assert budget.counts(is_ready=False) is counts
    assert budget.counts(is_ready=True)


@pytest.mark.parametrize(
    ("generation", "observed", "in_status", "allowed"), [(2, 2, 3, 3), (2, 1, 3, 0), (2, 3, 3, 3), (0, 0, -1, 0)]
)
def test_stale_status_allows_no_eviction(generation: int, observed: int, in_status: int, allowed: int) -> None:
    budget = DisruptionBudget.of(
        {
            "metadata": {"generation": generation},
            "status": {"observedGeneration": observed, "disruptionsAllowed": in_status},
        }
    )

    assert budget.allowed == allowed
