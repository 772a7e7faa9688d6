"""The advice to describe a kind that is not known in a policy."""

from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from webhook.cli.inputs.unknown_kinds import unknown_kind

TEMPLATE = make_pod("").gpu(1).template()
COUNTED = {"replicas": 2, "template": TEMPLATE}


def advised(spec: dict[str, Any], kind: str = "FooJob") -> str:
    content = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    return unknown_kind(content).partition("resource: ")[2]


@pytest.mark.parametrize(
    ("spec", "templates"),
    [
        pytest.param({"template": TEMPLATE}, "{path: spec.template}", id="one template"),
        pytest.param(COUNTED, "{path: spec.template, replicas: spec.replicas}", id="its number"),
        pytest.param(
            {"size": 2, "pool": {"podSpec": TEMPLATE["spec"], "replicas": 2}},
            "{path: spec.pool.podSpec, replicas: spec.pool.replicas, podSpec: true}",
            id="a PodSpec",
        ),
        pytest.param(
            {"groups": [COUNTED, COUNTED]},
            "{path: spec.groups.*.template, replicas: spec.groups.*.replicas}",
            id="list",
        ),
        pytest.param(
            {"roles": {"Master": COUNTED, "Worker": COUNTED}},
            "{path: spec.roles.*.template, replicas: spec.roles.*.replicas}",
            id="a map",
        ),
        pytest.param(
            {"roles": {"Master": COUNTED, "Worker": COUNTED, "policy": "All"}},
            "{path: spec.roles.Master.template, replicas: spec.roles.Master.replicas}, "
            "{path: spec.roles.Worker.template, replicas: spec.roles.Worker.replicas}",
            id="a map with other values",
        ),
        pytest.param(
            {"roles": {"a.b": {"template": TEMPLATE}}}, "{path: spec.roles[a.b].template}", id="a key with a dot"
        ),
    ],
)
def test_all_templates_are_named_with_their_numbers(spec: dict[str, Any], templates: str) -> None:
    assert advised(spec) == f"foojobs, templates: [{templates}]}}]"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Sandbox", "sandboxes"), ("Policy", "policies"), ("Relay", "relays"), ("Class", "classes"), ("Batch", "batches")],
)
def test_the_plural_is_that_of_code_generators(kind: str, plural: str) -> None:
    assert advised({}, kind).startswith(f"{plural}, ")
