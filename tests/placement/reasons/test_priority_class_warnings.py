"""Warnings about the PriorityClasses of a policy that the view of the cluster does not have."""

from typing import Any

import pytest

from tests.acceptance.placing.pools import pool_node, training_pod
from tests.support.admission import admit_pod, policy_with
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView
from webhook.kube.api.review_answer import fit_warnings
from webhook.placement.scheduler import Scheduler
from webhook.policy.policy import Policy

Object = dict[str, Any]


def priority_class(name: str, value: int = 1000, **fields: Any) -> Object:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


SYSTEM = priority_class("system-node-critical", 2_000_001_000)


def policy_of(name: str, **spec: Any) -> Policy:
    usage = {"allow": ["training"]}
    return policy_with(workloadTypes={"training": {"nodeUsage": usage, "priorityClassName": name}}, **spec)


def at_admission(policy: Policy, *objects: Object, **spec: Any) -> list[str]:
    view = ClusterView(made_anew([pool_node("train-1", "training"), *objects]), Scheduler())
    verdict = admit_pod(training_pod("pod").spec(**spec).obj(), policy, view)
    return [each for each in verdict.warnings if each.startswith("PriorityClass")]


@pytest.mark.parametrize(
    ("objects", "is_missing"),
    [
        pytest.param([], False, id="classes not known"),
        pytest.param([SYSTEM], True, id="no class of that name"),
        pytest.param([SYSTEM, priority_class("high")], False, id="a class of that name"),
    ],
)
def test_class_of_the_type_that_does_not_exist_is_named(objects: list[Object], is_missing: bool) -> None:
    warnings = at_admission(policy_of("high"), *objects)

    missing = "PriorityClass high does not exist: the API server denies this pod; create it, or name another class"
    assert warnings == ([missing] if is_missing else [])


def test_class_of_the_system_is_in_every_cluster() -> None:
    assert at_admission(policy_of("system-cluster-critical"), SYSTEM) == []


def test_warning_is_about_the_class_that_the_pod_has() -> None:
    assert at_admission(policy_of("high"), priority_class("mine"), priorityClassName="mine") == []


def test_warning_is_not_cut_by_the_api_server() -> None:
    (warning,) = at_admission(policy_of("h" * 253), SYSTEM)

    assert fit_warnings([warning]) == [warning]
