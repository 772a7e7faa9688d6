"""The kinds that a policy adds to those that create pods."""

from typing import Any

import orjson
import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.workloads.pod_set import pod_name
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.policy.spec.workloads import NodeUsage

_FOO = {
    "group": "example.com",
    "kind": "FooJob",
    "resource": "foojobs",
    "templates": [{"path": "spec.groups.*.template", "replicas": "spec.groups.*.size"}],
}


def _policy(*kinds: Any) -> Policy:
    content = {"apiVersion": API_VERSION, "kind": KIND, "spec": {"workloadKinds": list(kinds)}}
    return parse_policy(orjson.dumps(content), "p.yaml")


def _foo(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "FooJob", "metadata": {"name": "a"}, "spec": spec}


def test_a_policy_without_kinds_knows_the_built_in_ones() -> None:
    assert built_in_policy().kinds == kinds_by_name()


def test_pods_of_a_kind_of_the_policy() -> None:
    groups = [{"name": "ps", "template": {"spec": {}}}, {"name": "worker", "size": 2, "template": {"spec": {}}}]

    found = pod_sets(_foo({"groups": groups}), _policy(_FOO).kinds)

    assert [(each.path, each.role, each.replicas, pod_name(each.pod)) for each in found] == [
        ("spec.groups[0].template", "ps", 1, "default/a-ps-"),
        ("spec.groups[1].template", "worker", 2, "default/a-worker-"),
    ]


def test_a_role_can_be_named() -> None:
    kind = _FOO | {
        "templates": [{"path": "spec.driver", "role": "driver"}, {"path": "spec.executor", "replicas": "spec.n"}]
    }

    found = pod_sets(_foo({"driver": {"spec": {}}, "executor": {"spec": {}}, "n": 4}), _policy(kind).kinds)

    assert [(each.role, each.replicas, pod_name(each.pod)) for each in found] == [
        ("driver", 1, "default/a-driver-"),
        ("", 4, "default/a-"),
    ]


def test_a_kind_of_the_policy_replaces_the_built_in_one() -> None:
    mine = {"group": "apps", "kind": "Deployment", "resource": "deployments", "templates": [{"path": "spec.mine"}]}
    content = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"mine": {"spec": {}}}}

    (found,) = pod_sets(content, _policy(mine).kinds)

    assert found.path == "spec.mine"


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"group": "Example"}, 'group: Invalid value: "Example"; must be an API group'),
        ({"kind": "foo"}, 'kind: Invalid value: "foo"; must be a kind'),
        ({"resource": "FooJobs"}, 'resource: Invalid value: "FooJobs"; must be the plural'),
        ({"templates": [{"path": "spec..a"}]}, 'templates[0].path: Invalid value: "spec..a"; must be a dotted path'),
        ({"templates": [{"path": "*"}]}, 'templates[0].path: Invalid value: "*"; must be a dotted path'),
        (
            {"templates": [{"path": "a.*.*.*.*"}]},
            'templates[0].path: Invalid value: "a.*.*.*.*"; must be a dotted path',
        ),
        (
            {"templates": [{"path": "spec.a.*.template", "replicas": "spec.b.*.size"}]},
            'templates[0].replicas: Invalid value: "spec.b.*.size"; must have its * where path has them',
        ),
        (
            {"templates": [{"path": "spec.a.template", "replicas": "spec.a.*.size"}]},
            'templates[0].replicas: Invalid value: "spec.a.*.size"; must have its * where path has them',
        ),
        (
            {"templates": [{"path": "spec.a.*.b.*.template", "replicas": "spec.a.*.c.*.size"}]},
            'templates[0].replicas: Invalid value: "spec.a.*.c.*.size"; must have its * where path has them',
        ),
        ({"templates": [{"replicas": "spec.n"}]}, "templates[0].path: Required value"),
        ({"plural": "foojobs"}, "plural: Forbidden: unknown field"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_kind_is_rejected_with_its_field(changed: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _policy(_FOO | changed)

    assert str(refused.value).startswith(f"p.yaml: spec.workloadKinds[0].{wanted}")


def test_a_kind_without_templates_creates_no_pods() -> None:
    assert pod_sets(_foo({"template": {"spec": {}}}), _policy(_FOO | {"templates": []}).kinds) == ()


def test_a_kind_is_given_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        _policy(_FOO, _FOO | {"resource": "others"})

    assert "must hold each kind of a group once" in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "replicas"),
    [({}, 1), ({"replicas": "spec.n"}, 3), ({"times": "spec.m"}, 2), ({"times": "spec.m", "replicas": "spec.n"}, 6)],
    ids=["neither", "replicas", "times", "both"],
)
def test_pods_are_the_product_of_the_numbers_that_the_kind_names(fields: dict[str, str], replicas: int) -> None:
    kind = _FOO | {"templates": [{"path": "spec.template", **fields}]}

    (found,) = pod_sets(_foo({"template": {"spec": {}}, "n": 3, "m": 2}), _policy(kind).kinds)

    assert found.replicas == replicas


@pytest.mark.parametrize("prefer", [{"b": 20, "a": 20, "c": 80}, {"c": 80, "a": 20, "b": 20}])
def test_preferences_are_by_weight_and_name_in_any_order_of_the_keys(prefer: dict[str, int]) -> None:
    usage = NodeUsage(allow=("a", "b", "c"), prefer=prefer)

    assert usage.preferences == [("c", 80), ("a", 20), ("b", 20)]
