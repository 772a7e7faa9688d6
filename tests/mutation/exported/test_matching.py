"""The pods that an exported policy is for."""

from typing import Any

import pytest

from tests.mutation.exported.exporting import exported, named, objects_of, variables_of
from tests.support.admission import policy_with
from webhook.mutation.exported import Exported, export
from webhook.policy.policy import Withheld
from webhook.policy.policy_set import PolicySet


def test_a_canary_is_left_out() -> None:
    found = exported(canaryPercent=10)

    assert [each.field for each in found.left_out] == ["spec.canaryPercent"]
    assert (found.objects, found.without_effect) == ([], [])


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ({}, "maip.mxsf.io/queue"),
        ({}, "maip.mxsf.io/gpu-memory"),
        ({}, "gpu-fraction"),
        ({"allowedProducts": {"A": ["a"]}}, "maip.mxsf.io/gpu-product"),
    ],
)
def test_a_pod_that_asks_for_more_is_left_to_the_webhook(spec: dict[str, Any], key: str) -> None:
    assert f'"{key}"' in variables_of(exported(**spec))["usable"]


def test_pods_of_limited_namespaces_are_left_to_the_webhook() -> None:
    limits = [{"namespaces": ["a", "b"], "queues": []}, {"namespaces": ["b", "c"]}]

    assert '!(request.namespace in ["a", "b", "b", "c"])' in variables_of(exported(namespaceLimits=limits))["inForce"]


def test_a_policy_whose_labels_are_not_known_is_left_out() -> None:
    withheld = policy_with().withheld_as(Withheld("deny", "unknown"))

    assert [each.field for each in export(PolicySet(withheld)).left_out] == ["spec"]


def test_the_default_policy_is_for_the_namespaces_that_no_other_selects() -> None:
    one = named("one", namespaceSelector={"matchLabels": {"team": "a"}})
    two = named("two", namespaceSelector={"matchLabels": {"team": "b", "tier": "gold"}})

    found = objects_of(export(PolicySet.of(policy_with(), (one, two))), "MutatingAdmissionPolicy")

    selectors = {
        each["metadata"]["name"].partition(".")[2]: each["spec"]["matchConstraints"]["namespaceSelector"]
        for each in found
    }
    expressions = {name: selector["matchExpressions"][1:] for name, selector in selectors.items()}
    assert expressions["one"] == [{"key": "team", "operator": "In", "values": ["a"]}]
    # The two cannot select one namespace, so `two` needs no condition about `one`.
    assert [each["operator"] for each in expressions["two"]] == ["In", "In"]
    assert expressions["default"] == [{"key": "team", "operator": "NotIn", "values": ["a"]}]
    assert '"tier" in namespaceObject' in variables_of(Exported(found[-1:], [], []))["inForce"]


def test_of_two_policies_for_one_namespace_the_first_is_in_force() -> None:
    one = named("one", namespaceSelector={"matchLabels": {"team": "a"}})
    two = named("two", namespaceSelector={"matchLabels": {"tier": "gold"}})

    found = objects_of(export(PolicySet.of(policy_with(), (one, two))), "MutatingAdmissionPolicy")

    selectors = [each["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][1:] for each in found]
    assert selectors[1] == [
        {"key": "tier", "operator": "In", "values": ["gold"]},
        {"key": "team", "operator": "NotIn", "values": ["a"]},
    ]


def test_a_policy_after_one_that_selects_every_namespace_is_in_force_in_none() -> None:
    every = named("every", namespaceSelector={})

    found = objects_of(export(PolicySet.of(policy_with(), (every,))), "MutatingAdmissionPolicy")

    assert [variables_of(Exported([each], [], []))["inForce"] == "false" for each in found] == [False, True]


USER, GROUPS = "request.userInfo.username", "request.userInfo.?groups.orValue([])"


@pytest.mark.parametrize(
    ("exemption", "wanted"),
    [
        ({"users": ["jane"]}, f'{USER} in ["jane"]'),
        ({"groups": ["a", "b"]}, f'{GROUPS}.exists(g, g in ["a", "b"])'),
        ({"serviceAccounts": ["ns:a"]}, f'{USER} in ["system:serviceaccount:ns:a"]'),
        ({"serviceAccounts": ["system:serviceaccount:ns:a"]}, f'{USER} in ["system:serviceaccount:ns:a"]'),
        ({"namespaces": ["lab"]}, 'request.namespace in ["lab"]'),
        (
            {"podLabels": {"matchLabels": {"team": "a"}}},
            '("team" in object.metadata.?labels.orValue({}) && object.metadata.?labels.orValue({})["team"] in ["a"])',
        ),
        (
            {"podLabels": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            '!("x" in object.metadata.?labels.orValue({}))',
        ),
        (
            {"users": ["jane"], "groups": ["a"], "namespaces": ["lab"]},
            f'({USER} in ["jane"] && {GROUPS}.exists(g, g in ["a"]) && request.namespace in ["lab"])',
        ),
    ],
)
def test_an_exempt_pod_does_not_match(exemption: dict[str, Any], wanted: str) -> None:
    policies = objects_of(exported(exemptions=[{**exemption, "reason": "r"}]), "MutatingAdmissionPolicy")
    (condition,) = policies[0]["spec"]["matchConditions"]
    (plain,) = objects_of(exported(), "MutatingAdmissionPolicy")[0]["spec"]["matchConditions"]

    assert condition["expression"] == f"{plain['expression'].removesuffix(')')} && !({wanted}))"


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist"])
def test_a_policy_of_one_requirement_is_negated_for_those_after_it(operator: str) -> None:
    values = {"values": ["a"]} if operator.endswith("In") else {}
    first = named("one", namespaceSelector={"matchExpressions": [{"key": "k", "operator": operator, **values}]})
    found = objects_of(export(PolicySet.of(policy_with(), (first,))), "MutatingAdmissionPolicy")

    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}[operator]
    (_, negated) = found[-1]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert negated == {"key": "k", "operator": opposite, **values}
