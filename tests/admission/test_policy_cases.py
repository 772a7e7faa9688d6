"""Test cases of a policy: what is compared, and how a failure reads."""

from typing import Any

import orjson
import pytest

from tests.policy.spec.cases_of_policy import policy_text
from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.work import calls_of
from webhook.admission.policy_cases import (
    ABSENT,
    Difference,
    cases_of_others,
    parse_tested_policies,
    parse_tested_policy,
    run_cases,
)
from webhook.documents.field import InvalidInput
from webhook.policy.spec.document import API_VERSION, KIND

TRAINING = {"annotations": {TYPE: "training", PRODUCT: "NVIDIA-H20"}, "requests": {"nvidia.com/gpu": 8}}
PATCHED = {"outcome": "Patched"}


def differences(expect: dict[str, Any], case: dict[str, Any] = TRAINING, **spec: Any) -> list[Difference]:
    """Return the differences of one test case under a policy with these fields."""
    (result,) = run_cases(policy_with(tests=[{"name": "case", **case, "expect": expect}], **spec))
    return list(result.differences)


TOLERATION = {"key": "nvidia.com/gpu.product", "operator": "Equal", "value": "NVIDIA-H20", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("case", "expect", "spec"),
    [
        pytest.param(TRAINING, PATCHED, {}, id="outcome"),
        pytest.param(
            TRAINING,
            {**PATCHED, "rules": ["SchedulerName", "GpuProduct", "NodeUsageAffinity", "BinPacking"]},
            {},
            id="rules in any order",
        ),
        pytest.param(
            TRAINING, {**PATCHED, "contains": {"spec": {"tolerations": [TOLERATION]}}}, {}, id="item of a list"
        ),
        pytest.param(TRAINING, {**PATCHED, "warnings": []}, {}, id="no warning"),
        pytest.param(
            {"annotations": {TYPE: "trainig"}}, {"outcome": "Denied", "message": "supported values"}, {}, id="denied"
        ),
        pytest.param(
            {"annotations": {TYPE: "trainig"}},
            {"outcome": "Bypassed", "warnings": ['"trainig"']},
            {"invalidAnnotations": "warn"},
            id="warning",
        ),
        pytest.param(
            {"pod": {"spec": {"nodeName": "n"}}}, {"outcome": "Bypassed", "message": "nodeName"}, {}, id="pod"
        ),
        pytest.param(
            {"namespaceAnnotations": {TYPE: "inference"}, "requests": {"nvidia.com/gpu": 1}},
            {**PATCHED, "contains": {"metadata": {"annotations": {f"{DOMAIN}/placement-rules": "NodeUsageAffinity"}}}},
            {"tolerateAnyProduct": False},
            id="defaults of the namespace",
        ),
        pytest.param(
            {**TRAINING, "user": "jane"},
            {"outcome": "Bypassed", "message": "because"},
            {"exemptions": [{"users": ["jane"], "reason": "because"}]},
            id="exempt user",
        ),
        pytest.param(TRAINING, PATCHED, {"mode": "shadow"}, id="shadow mode does not matter"),
    ],
)
def test_a_case_passes(case: dict[str, Any], expect: dict[str, Any], spec: dict[str, Any]) -> None:
    assert differences(expect, case, **spec) == []


@pytest.mark.parametrize(
    ("expect", "found"),
    [
        ({"outcome": "Unchanged"}, [Difference("outcome", "Unchanged", "Patched")]),
        (
            {**PATCHED, "rules": ["Spread"]},
            [Difference("rules", ["Spread"], ["BinPacking", "GpuProduct", "NodeUsageAffinity", "SchedulerName"])],
        ),
        (
            {**PATCHED, "contains": {"spec": {"schedulerName": "kai-scheduler", "priority": 1}}},
            [
                Difference("contains.spec.schedulerName", "kai-scheduler", "volcano"),
                Difference("contains.spec.priority", 1, ABSENT),
            ],
        ),
        ({**PATCHED, "warnings": ["spread"]}, [Difference("warnings", ["spread"], [])]),
        ({**PATCHED, "message": "no"}, [Difference("message", "no", ABSENT)]),
    ],
)
def test_a_case_fails_with_what_was_expected_and_found(expect: dict[str, Any], found: list[Difference]) -> None:
    assert differences(expect) == found


def test_an_item_that_a_list_lacks_is_shown_with_the_list() -> None:
    (found,) = differences({**PATCHED, "contains": {"spec": {"tolerations": [{**TOLERATION, "value": "NVIDIA-A10"}]}}})
    assert found.path == "contains.spec.tolerations[0]"
    assert TOLERATION in found.got


def test_a_policy_with_a_case_that_fails_is_not_valid() -> None:
    text = policy_text([{"name": "good", **TRAINING, "expect": PATCHED}, {"name": "bad", "expect": PATCHED}])
    with pytest.raises(InvalidInput) as raised:
        parse_tested_policy(text, "policy.yaml")
    (error,) = raised.value.errors
    assert str(error) == (
        'policy.yaml:14: spec.tests[1].expect.outcome: Invalid value: "Patched"; "bad" gets Bypassed: no workload type'
    )


@pytest.mark.slow
def test_lists_within_lists_are_compared_for_a_bounded_number_of_values() -> None:
    """Without the bound, this takes 9 million calls."""
    keys = [{"key": f"k{number}", "operator": "Exists"} for number in range(30)]
    case = {"pod": {"metadata": {"annotations": {TYPE: "training"}}, "spec": affinity_of(keys)}}
    expect = {**PATCHED, "contains": {"spec": affinity_of([*keys, {"key": "no"}])}}
    found: list[Difference] = []

    calls = calls_of(lambda: found.extend(differences(expect, case)))

    assert found[0].path.endswith("nodeSelectorTerms[0]")
    assert calls < 2_000_000


def affinity_of(expressions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the spec of a pod with many equal terms of node affinity."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}] * 30}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def test_a_long_list_is_not_compared_item_by_item() -> None:
    many = [{"key": str(number), "operator": "Exists"} for number in range(500)]
    case = {"pod": {"metadata": {"annotations": {TYPE: "training"}}, "spec": {"tolerations": many}}}
    (found,) = differences({**PATCHED, "contains": {"spec": {"tolerations": many}}}, case)
    assert found == Difference("contains.spec.tolerations", "500 items", "502 items, too many values to compare")


def _documents(*policies: tuple[str, dict[str, Any] | None, str]) -> str:
    """Return policies, each with a name, its namespaceSelector and the namespace of its only test case."""
    found = []
    for name, selector, namespace in policies:
        case = {"name": "case", **TRAINING, "namespace": namespace, "expect": PATCHED}
        spec = {"tests": [case], **({"namespaceSelector": selector} if selector else {})}
        found.append(orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}))
    return "\n---\n".join(each.decode() for each in found)


BY_NAME = {"matchLabels": {"kubernetes.io/metadata.name": "team-b"}}
BY_LABEL = {"matchLabels": {"team": "a"}}


@pytest.mark.parametrize(
    ("policies", "index"),
    [
        pytest.param((("default", None, "team-b"), ("b", BY_NAME, "team-b")), 1, id="a case of the default policy"),
        pytest.param((("b", BY_NAME, "team-b"), ("default", None, "team-b")), 2, id="in any order"),
    ],
)
def test_a_case_for_a_namespace_of_another_policy_names_that_policy(policies: Any, index: int) -> None:
    found = parse_tested_policies(_documents(*policies), "policies.yaml")

    assert [*map(str, cases_of_others(found))] == [
        (
            f'policies.yaml, document {index} (default): spec.tests[0].namespace: Invalid value: "team-b"; policy b is '
            "in force there; move the case to it, or name another namespace"
        )
    ]


def test_a_case_is_not_of_another_policy_where_labels_decide() -> None:
    policies = _documents(("default", None, "team-c"), ("a", BY_LABEL, "team-b"), ("b", BY_NAME, "team-b"))

    assert [*cases_of_others(parse_tested_policies(policies, "policies.yaml"))] == []
