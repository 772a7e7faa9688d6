"""Which objects policies are exported as, and what is left to the webhook."""

from typing import Any

import pytest

from tests.mutation.exported.exporting import exported, named
from tests.support.admission import policy_with
from webhook.mutation.exported import Exported, export
from webhook.policy.policy_set import PolicySet


def test_a_policy_has_an_object_with_a_binding_of_its_name() -> None:
    found = exported()

    assert [(each["kind"], each["metadata"]["name"]) for each in found.objects] == [
        ("MutatingAdmissionPolicy", "placement-webhook.default"),
        ("MutatingAdmissionPolicyBinding", "placement-webhook.default"),
    ]
    identity = policy_with().identity
    assert {each["metadata"]["annotations"]["placement.maip.mxsf.io/policy"] for each in found.objects} == {identity}


@pytest.mark.parametrize(("release", "version"), [(37, "v1"), (36, "v1"), (35, "v1beta1"), (34, "v1beta1")])
def test_mutation_is_of_the_version_that_the_release_serves(release: int, version: str) -> None:
    assert {each["apiVersion"].partition("/")[2] for each in exported(release).objects} == {version}


@pytest.mark.parametrize("spec", [{"mode": "shadow"}, {"canaryPercent": 0}])
def test_a_policy_that_is_not_enforced_has_no_objects(spec: dict[str, Any]) -> None:
    assert exported(**spec) == Exported([], [], [])


TYPE = {"nodeUsage": {"allow": ["a"]}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"invalidAnnotations": "deny"}, "spec.invalidAnnotations"),
        ({"requireType": "deny"}, "spec.requireType"),
        ({"allowedProducts": {"A": ["a"]}}, "spec.allowedProducts"),
        ({"namespaceLimits": [{"namespaces": ["a"], "maxCardsPerPod": 1}]}, "spec.namespaceLimits"),
        ({"workloadTypes": {"t": {**TYPE, "qos": {"class": "Guaranteed"}}}}, "spec.workloadTypes.t.qos"),
        ({"workloadTypes": {"t": {**TYPE, "spread": {"topology": "host"}}}}, "spec.workloadTypes.t.spread"),
        ({"workloadTypes": {"t": {**TYPE, "within": {"topology": "rack"}}}}, "spec.workloadTypes.t.within"),
        ({"workloadTypes": {"t": {**TYPE, "priorityClassName": "a"}}}, "spec.workloadTypes.t.priorityClassName"),
    ],
)
def test_a_field_without_effect_is_named(spec: dict[str, Any], field: str) -> None:
    lenient: dict[str, Any] = {"invalidAnnotations": "warn", "workloadTypes": {"t": TYPE}}
    assert exported(**lenient).without_effect == []

    found = exported(**(lenient | spec))

    assert [each.field for each in found.without_effect] == [field]
    assert len(found.objects) == 2


def test_objects_of_two_policies_never_have_one_name() -> None:
    other = named("default", namespaceSelector={"matchLabels": {"team": "a"}})

    found = export(PolicySet.of(policy_with(), (other,)))

    assert [each.field for each in found.left_out] == ["metadata.name"]
    assert len(found.objects) == 2


def test_a_name_that_is_too_long_is_left_out() -> None:
    assert [each.field for each in export(PolicySet(named("a" * 253))).left_out] == ["metadata.name"]
