"""Which objects policies are exported as, and what is left to the webhook."""

from typing import Any

import pytest

from tests.support.admission import policy_with
from webhook.mutation.exported import Exported, export
from webhook.policy.policy import Policy, Withheld
from webhook.policy.policy_set import PolicySet


def exported(release: int = 36, **spec: Any) -> Exported:
    return export(PolicySet(policy_with(**spec)), release)


def named(name: str, **spec: Any) -> Policy:
    policy = policy_with(**spec)
    policy.name = name
    return policy


def objects_of(found: Exported, kind: str) -> list[dict[str, Any]]:
    return [each for each in found.objects if each["kind"] == kind]


def variables_of(found: Exported) -> dict[str, str]:
    return {each["name"]: each["expression"] for each in found.objects[0]["spec"]["variables"]}


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


def test_a_canary_is_left_out() -> None:
    found = exported(canaryPercent=10)

    assert [each.field for each in found.left_out] == ["spec.canaryPercent"]
    assert (found.objects, found.without_effect) == ([], [])


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
        ({"workloadTypes": {"t": {**TYPE, "priorityClassName": "a"}}}, "spec.workloadTypes.t.priorityClassName"),
    ],
)
def test_a_field_without_effect_is_named(spec: dict[str, Any], field: str) -> None:
    lenient: dict[str, Any] = {"invalidAnnotations": "warn", "workloadTypes": {"t": TYPE}}
    assert exported(**lenient).without_effect == []

    found = exported(**(lenient | spec))

    assert [each.field for each in found.without_effect] == [field]
    assert len(found.objects) == 2


@pytest.mark.parametrize(
    ("topology", "is_packed"), [("host", False), ("zone", True)], ids=["the same domain", "another domain"]
)
def test_a_type_whose_spreading_may_undo_its_packing_is_not_packed(topology: str, is_packed: bool) -> None:
    found = exported(workloadTypes={"t": {**TYPE, "binPacking": True, "spread": {"topology": topology}}})

    assert ('variables.type in ["t"]' in variables_of(found)["isPacked"]) is is_packed
    assert ("bin-packing" in str(found.without_effect[0])) is not is_packed


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


def test_any_product_is_tolerated_unless_the_policy_restricts_products() -> None:
    assert variables_of(exported())["anyWillDo"] != "false"
    assert variables_of(exported(allowedProducts={"A": ["a"]}))["anyWillDo"] == "false"
    assert variables_of(exported(tolerateAnyProduct=False))["anyWillDo"] == "false"


def test_a_policy_whose_labels_are_not_known_is_left_out() -> None:
    withheld = policy_with().withheld_as(Withheld("deny", "unknown"))

    assert [each.field for each in export(PolicySet(withheld)).left_out] == ["spec"]


def test_objects_of_two_policies_never_have_one_name() -> None:
    other = named("default", namespaceSelector={"matchLabels": {"team": "a"}})

    found = export(PolicySet.of(policy_with(), (other,)))

    assert [each.field for each in found.left_out] == ["metadata.name"]
    assert len(found.objects) == 2


def test_a_name_that_is_too_long_is_left_out() -> None:
    assert [each.field for each in export(PolicySet(named("a" * 253))).left_out] == ["metadata.name"]


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


def test_all_edits_are_one_mutation_without_typed_objects() -> None:
    """The API server encodes the pod for each mutation, and a typed object in a list panics it."""
    every = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a", "b"], "prefer": {"a": 1, "b": 2}},
                "binPacking": True,
                "extraTolerations": [{"key": "x"}],
            }
        }
    )

    (mutation,) = objects_of(every, "MutatingAdmissionPolicy")[0]["spec"]["mutations"]
    assert "JSONPatch{" in mutation["jsonPatch"]["expression"]
    assert "Object" not in mutation["jsonPatch"]["expression"]


def test_toleration_that_an_earlier_one_covers_is_added_once() -> None:
    found = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a"]},
                "extraTolerations": [{"key": "x", "operator": "Exists"}, {"key": "x", "value": "y"}],
            }
        }
    )

    assert variables_of(found)["extra"].count('"key": dyn("x")') == 1
