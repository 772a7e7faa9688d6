"""Test cases of a policy: what is compared, and how a failure reads."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.spec.cases_of_policy import policy_text
from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.work import calls_of
from webhook.admission.policy_cases import (
    ABSENT,
    Difference,
    cases_of_others,
    missing,
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
        pytest.param(
            {**TRAINING, "groups": ["ops"]},
            {"outcome": "Bypassed", "message": "because"},
            {"exemptions": [{"groups": ["ops"], "reason": "because"}]},
            id="exempt group",
        ),
        pytest.param(
            {**TRAINING, "labels": {"jobtype": "nightly"}},
            {**PATCHED, "contains": {"metadata": {"labels": {"jobtype": "nightly"}}}, "warnings": ["jobtype=nightly"]},
            {},
            id="a label of the pod",
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

    assert [str(error) for _, error in cases_of_others(found)] == [
        (
            f'policies.yaml, document {index} (default): spec.tests[0].namespace: Invalid value: "team-b"; policy b is '
            "in force there; move the case to it, or name another namespace"
        )
    ]


def test_a_case_is_not_of_another_policy_where_labels_decide() -> None:
    policies = _documents(("default", None, "team-c"), ("a", BY_LABEL, "team-b"), ("b", BY_NAME, "team-b"))

    assert [*cases_of_others(parse_tested_policies(policies, "policies.yaml"))] == []


SCALARS = st.sampled_from([0, 1, True, False, "a", None])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c"]), inner, max_size=2),
    max_leaves=6,
)


def contains(got: Any, expected: Any) -> bool:
    """Return whether `got` has all of `expected`, written plainly."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return all(key in got and contains(got[key], value) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(got, list):
        return all(any(contains(each, item) for each in got) for item in expected)
    return type(got) is type(expected) and got == expected


@pytest.mark.parametrize(("expected", "got"), [(True, 1), (1, True), (0, False)])
def test_truth_is_no_number(expected: object, got: object) -> None:
    assert [each.expected for each in missing(expected, got, "contains", iter(range(9)))] == [expected]


@given(VALUES, VALUES)
def test_nothing_is_missing_from_a_value_that_contains_the_expected_one(expected: Any, got: Any) -> None:
    found = [*missing(expected, got, "contains", iter(range(1000)))]

    assert (found == []) is contains(got, expected)
    assert [*missing(expected, expected, "contains", iter(range(1000)))] == []
    for each in found:
        # The path leads to the expected value, whose part is shown.
        value = expected
        for step in re.findall(r"\[(\d+)\]|\[(b/c)\]|\.(a)", each.path.removeprefix("contains")):
            index, *keys = step
            value = value[int(index)] if index else value[keys[0] or keys[1]]
        assert value == each.expected


@pytest.mark.parametrize("values", [3, 4, 5])
def test_a_comparison_ends_when_its_steps_are_used_up(values: int) -> None:
    """The map is one step, and each of its values another one."""
    content = {f"k{number}": number for number in range(values)}
    found = [*missing(content, content, "contains", iter(range(5)))]

    assert [each.got for each in found] == ["too many values to compare"] * (values - 4 if values > 4 else 0)


@pytest.mark.parametrize(("items", "is_compared"), [(400, True), (401, False)])
def test_lists_are_compared_up_to_a_number_of_pairs(items: int, *, is_compared: bool) -> None:
    got = [*range(250)]
    found = [*missing([0] * items, got, "x", iter(range(10**6)))]

    assert found == ([] if is_compared else [Difference("x", "401 items", "250 items, too many values to compare")])


@pytest.mark.parametrize(
    ("expect", "paths"),
    [
        ({"outcome": "Denied", "message": "supported values"}, []),
        ({"outcome": "Denied", "contains": {"spec": {}}}, ["contains"]),
        ({"outcome": "Patched"}, ["outcome"]),
        ({"outcome": "Denied", "warnings": []}, []),
        ({"outcome": "Denied", "rules": []}, []),
        ({"outcome": "Patched", "rules": ["Spread"], "warnings": ["nowhere"], "message": "nowhere"},
         ["outcome", "rules", "warnings", "message"]),
    ],
)  # fmt: skip
def test_each_expectation_on_a_denied_pod_is_compared(expect: dict[str, Any], paths: list[str]) -> None:
    found = differences(expect, {"annotations": {TYPE: "trainig"}})

    assert [each.path for each in found] == paths
    if paths == ["outcome"]:
        assert str(found[0].got).startswith("Denied: metadata.annotations")


@pytest.mark.parametrize(
    ("warnings", "lacking"),
    [
        (None, None), ([], []), (["not known"], None), (["not known", "team"], None),
        (["nope", "not known", "nil"], ["nope", "nil"]),
    ],
)  # fmt: skip
def test_each_expected_warning_is_part_of_one_and_no_warning_means_none(
    warnings: list[str] | None, lacking: list[str] | None
) -> None:
    annotations = {TYPE: "training", PRODUCT: "NVIDIA-H20", f"{DOMAIN}/team": "a"}
    case = {**TRAINING, "annotations": annotations}
    expect = PATCHED if warnings is None else {**PATCHED, "warnings": warnings}
    shown = [f"annotation {DOMAIN}/team is not known and does nothing"]

    assert differences(expect, case) == ([] if lacking is None else [Difference("warnings", lacking, shown)])


def test_a_case_of_a_pod_that_is_invalid_fails_with_its_error() -> None:
    case = {"pod": {"metadata": {"annotations": {TYPE: "training"}}, "spec": {"tolerations": 1}}}
    (found,) = differences(PATCHED, case)

    assert (found.path, found.expected) == ("outcome", "Patched")
    assert str(found.got).startswith("an invalid pod: request.object.spec.tolerations")
