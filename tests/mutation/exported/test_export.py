"""Which objects policies are exported as, and what is left to the webhook."""

import re
from typing import Any

import pytest

from tests.support.admission import policy_with
from webhook.mutation.exported import Exported, export
from webhook.mutation.exported.cards import card_of
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


def test_a_policy_has_two_policies_with_bindings_of_its_name() -> None:
    found = exported()

    assert [(each["kind"], each["metadata"]["name"]) for each in found.objects] == [
        ("MutatingAdmissionPolicy", "placement-webhook.default"),
        ("MutatingAdmissionPolicyBinding", "placement-webhook.default"),
        ("ValidatingAdmissionPolicy", "placement-webhook.default"),
        ("ValidatingAdmissionPolicyBinding", "placement-webhook.default"),
    ]
    identity = policy_with().identity
    assert {each["metadata"]["annotations"]["placement.maip.mxsf.io/policy"] for each in found.objects} == {identity}


@pytest.mark.parametrize(("release", "version"), [(37, "v1"), (36, "v1"), (35, "v1beta1"), (34, "v1beta1")])
def test_mutation_is_of_the_version_that_the_release_serves(release: int, version: str) -> None:
    versions = {each["kind"]: each["apiVersion"].partition("/")[2] for each in exported(release).objects}

    assert versions["MutatingAdmissionPolicy"] == versions["MutatingAdmissionPolicyBinding"] == version
    assert versions["ValidatingAdmissionPolicy"] == "v1"


@pytest.mark.parametrize("spec", [{"mode": "shadow"}, {"canaryPercent": 0}])
def test_a_policy_that_is_not_enforced_has_no_objects(spec: dict[str, Any]) -> None:
    assert exported(**spec) == Exported([], [])


@pytest.mark.parametrize(
    ("release", "spec", "field"),
    [
        (36, {"canaryPercent": 10}, "spec.canaryPercent"),
        (35, {"schedulers": {"volcano": {"backend": "native"}}}, "spec.schedulers.volcano.backend"),
        (
            36,
            {
                "accelerators": [
                    {"name": "a", "resources": ["a.com/a"], "card": "a.com/a", "driverLabel": "a.com/a.count"}
                ]
            },
            "spec.accelerators[0].driverLabel",
        ),
    ],
)
def test_a_policy_with_a_field_that_cannot_be_expressed_is_left_out(
    release: int, spec: dict[str, Any], field: str
) -> None:
    found = exported(release, **spec)

    assert [each.field for each in found.left_out] == [field]
    assert found.objects == []


def test_a_policy_whose_labels_are_not_known_is_left_out() -> None:
    withheld = policy_with().withheld_as(Withheld("deny", "unknown"))

    assert [each.field for each in export(PolicySet(withheld)).left_out] == ["spec"]


def test_objects_of_two_policies_never_have_one_name() -> None:
    other = named("default", namespaceSelector={"matchLabels": {"team": "a"}})

    found = export(PolicySet.of(policy_with(), (other,)))

    assert [each.field for each in found.left_out] == ["metadata.name"]
    assert len(found.objects) == 4


def test_a_name_that_is_too_long_is_left_out() -> None:
    assert [each.field for each in export(PolicySet(named("a" * 253))).left_out] == ["metadata.name"]


def test_what_is_only_warned_of_is_not_denied() -> None:
    assert objects_of(exported(invalidAnnotations="warn"), "ValidatingAdmissionPolicy") == []


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
    in_force = {each["name"]: each["expression"] for each in found[-1]["spec"]["variables"]}["inForce"]
    assert '"tier" in namespaceObject' in in_force


def test_of_two_policies_for_one_namespace_the_first_is_in_force() -> None:
    one = named("one", namespaceSelector={"matchLabels": {"team": "a"}})
    two = named("two", namespaceSelector={"matchLabels": {"tier": "gold"}})

    found = objects_of(export(PolicySet.of(policy_with(), (one, two))), "MutatingAdmissionPolicy")

    selectors = [each["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][1:] for each in found]
    assert selectors[1] == [
        {"key": "tier", "operator": "In", "values": ["gold"]},
        {"key": "team", "operator": "NotIn", "values": ["a"]},
    ]


@pytest.mark.parametrize(
    ("products", "affinity", "is_required"),
    [(["NVIDIA-L4"], True, True), (["NVIDIA-L4", "NVIDIA-A*"], True, False), (["NVIDIA-L4"], False, False)],
    ids=["names", "a pattern", "without affinity"],
)
def test_products_of_a_namespace_are_required_if_each_has_a_name(
    products: list[str], affinity: bool, is_required: bool
) -> None:
    """A node selector cannot have a pattern of values."""
    limits = [{"namespaces": ["a"], "products": products}]
    (policy,) = objects_of(exported(namespaceLimits=limits, productAffinity=affinity), "MutatingAdmissionPolicy")
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}

    assert ("true" in variables["listIsRequired"]) is is_required


def test_no_value_is_a_typed_object() -> None:
    every = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a"], "prefer": {"a": 1}},
                "priorityClassName": "high",
                "qos": {"class": "Guaranteed", "limitsFromRequests": True},
                "extraTolerations": [{"key": "x"}],
            }
        }
    )

    texts = [
        each["jsonPatch"]["expression"] for each in objects_of(every, "MutatingAdmissionPolicy")[0]["spec"]["mutations"]
    ]

    assert texts
    assert [each for each in texts if "Object" in each] == []


def test_all_edits_are_one_mutation() -> None:
    every = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a"], "prefer": {"a": 1, "b": 2}},
                "priorityClassName": "high",
                "qos": {"class": "Guaranteed", "limitsFromRequests": True},
                "extraTolerations": [{"key": "x"}],
            }
        }
    )

    (policy,) = objects_of(every, "MutatingAdmissionPolicy")
    assert len(policy["spec"]["mutations"]) == 1


@pytest.mark.parametrize(
    ("spec", "concerns"),
    [
        ({}, False),
        ({"requireType": "deny"}, True),
        ({"namespaceLimits": [{"namespaces": ["a"], "maxCardsPerPod": 1}]}, True),
        ({"workloadTypes": {"t": {"nodeUsage": {"allow": ["a"]}, "qos": {"class": "Guaranteed"}}}}, True),
    ],
)
def test_denials_concern_a_pod_without_annotations_only_if_the_policy_demands_more(
    spec: dict[str, Any], concerns: bool
) -> None:
    (policy,) = objects_of(exported(**spec), "ValidatingAdmissionPolicy")
    (condition,) = policy["spec"]["matchConditions"]

    assert ("containers" in condition["expression"]) == concerns


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"namespaceLimits": [{"namespaces": ["a"], "maxCardsPerPod": 1}]}, "cards in a pod; allowed: at most"),
        (
            {"workloadTypes": {"t": {"nodeUsage": {"allow": ["a"]}, "qos": {"class": "Guaranteed"}}}},
            '["Guaranteed"]',
        ),
    ],
    ids=["a limit of cards", "a QoS class"],
)
def test_what_a_policy_does_not_ask_for_is_not_in_its_objects(asked: dict[str, Any], text: str) -> None:
    """An API server limits the length of expressions and the work for them."""
    assert text not in str(exported().objects)
    assert text in str(exported(**asked).objects)


def test_toleration_that_an_earlier_one_covers_is_added_once() -> None:
    found = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a"]},
                "extraTolerations": [{"key": "x", "operator": "Exists"}, {"key": "x", "value": "y"}],
            }
        }
    )

    variables = {each["name"]: each["expression"] for each in found.objects[0]["spec"]["variables"]}
    assert variables["extra"].count('"key": dyn("x")') == 1


def test_each_accelerator_has_the_label_of_its_driver() -> None:
    """The first one is meant where no other is."""
    policy = policy_with()
    first, *others = (each.driver_label or f"{each.card}.driver-version" for each in policy.spec.accelerators)

    assert re.findall(r'"([^"]+)"', dict(card_of(policy))["driverLabel"]) == [*others, first]
