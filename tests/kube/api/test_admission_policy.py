"""Which changes make the stored admission policies equal to the wanted ones."""

from copy import deepcopy
from typing import Any

import pytest

from webhook.kube.api.admission_policy import Difference, ObjectId, changes, difference, path_of

Object = dict[str, Any]
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def make(kind: str, name: str = "one", **spec: Any) -> Object:
    metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"policy": "default@1"}}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def policy(name: str = "one") -> Object:
    constraints = {"resourceRules": [RULE]}
    return make("MutatingAdmissionPolicy", name, matchConstraints=constraints, variables=[], mutations=[{"a": "b"}])


def binding(name: str = "one") -> Object:
    return make("MutatingAdmissionPolicyBinding", name, policyName=name)


def as_stored(content: Object) -> Object:
    """The object with the defaults and facts of the API server."""
    stored = deepcopy(content)
    stored["metadata"] |= {"uid": "1", "resourceVersion": "2", "generation": 1}
    spec = stored["spec"]
    if "matchConstraints" in spec:
        spec |= {"failurePolicy": "Fail"}
        del spec["variables"]
        spec["matchConstraints"] |= {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
        spec["matchConstraints"]["resourceRules"] = [{**RULE, "scope": "*"}]
    return stored


def stored(*content: Object) -> dict[ObjectId, Object]:
    return {ObjectId.of(each): as_stored(each) for each in content}


@pytest.mark.parametrize("content", [policy(), binding()])
def test_defaults_of_the_api_server_are_no_difference(content: Object) -> None:
    assert difference(content, as_stored(content)) is None


def test_labels_and_annotations_of_others_are_no_difference() -> None:
    found = as_stored(binding())
    found["metadata"]["labels"]["of"] = "argo"
    found["metadata"]["annotations"]["of"] = "argo"
    assert difference(binding(), found) is None


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        (("spec", "failurePolicy"), "Ignore", Difference.SPEC),
        (("spec", "matchConditions"), [{"name": "never", "expression": "false"}], Difference.SPEC),
        (("spec", "matchConstraints", "objectSelector"), {"matchLabels": {"a": "b"}}, Difference.SPEC),
        (("metadata", "labels", "a"), "c", Difference.METADATA),
        (("metadata", "annotations", "policy"), "default@2", Difference.METADATA),
    ],
)
def test_an_edit_is_a_difference(path: tuple[str, ...], value: Any, part: Difference) -> None:
    found = as_stored(policy())
    *parents, last = path
    place = found
    for each in parents:
        place = place[each]
    place[last] = value
    assert difference(policy(), found) is part


def test_another_owner_is_a_difference() -> None:
    wanted = policy()
    wanted["metadata"]["ownerReferences"] = [{"kind": "ClusterRole", "name": "a", "uid": "1"}]
    assert difference(wanted, as_stored(wanted)) is None
    assert difference(wanted, as_stored(policy())) is Difference.METADATA


def test_policies_are_written_before_their_bindings_and_removed_after_them() -> None:
    made = changes([binding(), policy()], {})
    assert [(ObjectId.of(each).kind, old) for each, old in made.written] == [
        ("MutatingAdmissionPolicy", None),
        ("MutatingAdmissionPolicyBinding", None),
    ]
    gone = changes([], stored(policy(), binding()))
    assert [each["kind"] for each in gone.removed] == ["MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"]


def test_what_differs_is_written_and_what_equals_is_left_alone() -> None:
    known = stored(policy(), binding(), policy("old"))
    known[ObjectId("MutatingAdmissionPolicy", "one")]["spec"]["mutations"] = []
    found = changes([policy(), binding()], known)
    assert [(ObjectId.of(each), old) for each, old in found.written] == [
        (ObjectId("MutatingAdmissionPolicy", "one"), known[ObjectId("MutatingAdmissionPolicy", "one")])
    ]
    assert [ObjectId.of(each).name for each in found.removed] == ["old"]
    assert not changes([policy(), binding()], stored(policy(), binding()))


def test_an_object_has_the_path_of_its_version() -> None:
    beta = policy() | {"apiVersion": "admissionregistration.k8s.io/v1beta1"}
    assert path_of(beta) == "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies/one"
