"""Which evictions the API server would refuse."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder
from tests.support.objects.moves import budget, running
from webhook.cluster.eviction_refusal import eviction_refusal
from webhook.cluster.objects.disruption_budget import DisruptionBudget, budgets_by_namespace
from webhook.cluster.pods.bound_pods import BoundPod

POD = running("p", "a")
UNREADY = POD.status(conditions=[{"type": "Ready", "status": "False"}])


def refusal(budgets: list[dict[str, Any]], *pods: PodBuilder) -> str:
    read = budgets_by_namespace(map(DisruptionBudget.of, budgets))
    assert read is not None
    return eviction_refusal([BoundPod.of(pod.obj()) for pod in pods], read)


def changed(allowed: int, **status: Any) -> dict[str, Any]:
    made = budget("web", allowed)
    made["status"] |= status
    return made


@pytest.mark.parametrize(
    ("budgets", "pod"),
    [
        pytest.param([], POD, id="no budget"),
        pytest.param([budget("web", 1)], POD, id="one disruption is left"),
        pytest.param([budget("web", 0, namespace="other")], POD, id="of another namespace"),
        pytest.param([budget("web", 0, app="other")], POD, id="of other pods"),
        pytest.param([budget("web", 0, selector=None)], POD, id="a null selector selects nothing"),
        pytest.param([budget("web", 0)], POD.status(phase="Pending"), id="a pending pod"),
        pytest.param([budget("web", 0)], POD.deletion("2026-03-01T00:00:00Z"), id="a pod that is being deleted"),
        pytest.param([budget("web", 0)], UNREADY, id="an unready pod while enough are healthy"),
        pytest.param(
            [
                changed(0, currentHealthy=0)
                | {"spec": budget("web", 0)["spec"] | {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
            ],
            UNREADY,
            id="an unready pod, always allowed",
        ),
    ],
)
def test_evictions_that_are_allowed(budgets: list[dict[str, Any]], pod: PodBuilder) -> None:
    assert refusal(budgets, pod) == ""


@pytest.mark.parametrize(
    ("budgets", "pod"),
    [
        pytest.param([budget("web", 0)], POD, id="no disruption is left"),
        pytest.param([budget("web", 0, selector={})], POD, id="an empty selector selects all pods"),
        pytest.param([changed(1, observedGeneration=0)], POD, id="a status older than the spec"),
        pytest.param([changed(-1)], POD, id="a negative number"),
        pytest.param([changed(0, currentHealthy=1)], UNREADY, id="an unready pod while too few are healthy"),
    ],
)
def test_evictions_that_are_refused(budgets: list[dict[str, Any]], pod: PodBuilder) -> None:
    assert refusal(budgets, pod).startswith("the PodDisruptionBudget team-a/web allows no disruption (")


def test_pods_of_one_budget_add_up() -> None:
    assert refusal([budget("web", 2)], POD, running("q", "a")) == ""
    assert refusal([budget("web", 1)], POD, running("q", "a")) == (
        "the PodDisruptionBudget team-a/web allows only 1 disruption (2 pods are healthy, 1 must be)"
    )


def test_unready_pods_do_not_use_up_a_budget() -> None:
    assert refusal([budget("web", 1)], POD, UNREADY) == ""


def test_a_pod_with_two_budgets_cannot_be_evicted() -> None:
    assert refusal([budget("web", 5), budget("app", 5)], POD) == (
        "the PodDisruptionBudgets team-a/app and team-a/web cover team-a/p; a pod with two of them cannot be evicted"
    )
