"""The advice to describe a kind that is not known in a policy."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from tests.support.programs.command import Run
from webhook.cli.inputs.unknown_kinds import undescribed_templates, unknown_kind
from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind
from webhook.policy.spec.document import API_VERSION

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
            {"instances": 2, "template": TEMPLATE},
            "{path: spec.template, replicas: spec.instances}",
            id="a number of another name",
        ),
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
            {"roles": {"Worker": COUNTED}},
            "{path: spec.roles.*.template, replicas: spec.roles.*.replicas}",
            id="a map with one value",
        ),
        pytest.param({"driver": {"template": TEMPLATE}}, "{path: spec.driver.template}", id="a field"),
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


@pytest.mark.parametrize(
    ("api_version", "kind", "advice"),
    [
        ("v1", "pod", "is not a kind of v1; did you mean Pod of v1?"),
        ("v1", "Deployment", "is not a kind of v1; did you mean Deployment of apps/v1?"),
        ("batch/v1", "CronJbo", "is not a kind of batch/v1; did you mean CronJob of batch/v1?"),
        ("v1", "configmap", "is not a kind of v1; did you mean ConfigMap of v1?"),
        (
            "kubeflow.org/v1",
            "PytorchJob",
            "is not a known kind; did you mean PyTorchJob? Or describe it in the policy: ",
        ),
        ("grove.io/v1", "PodClique", "is not a known kind; describe it in the policy: "),
        ("training.kubedl.io/v1", "PyTorchJob", "is not a known kind; describe it in the policy: "),
        ("v1", "Foo", "is not a known kind; describe it in the policy: "),
    ],
)
def test_a_mistyped_kind_gets_the_one_that_was_meant(api_version: str, kind: str, advice: str) -> None:
    found = unknown_kind({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}})

    assert found.startswith(advice)


@pytest.mark.parametrize(
    ("paths", "counted"),
    [
        pytest.param(["spec.roles.*.template"], [], id="all"),
        pytest.param(["spec.roles.Master.template"], ["spec.roles.Worker.template"], id="one of a map"),
        pytest.param(["spec.roles.*.template.spec"], [], id="a part"),
        pytest.param(["spec.roles.Worker.template", "spec.roles.Master.template"], [], id="all, by two paths"),
        pytest.param(
            ["spec.none", "spec.roles.Worker.template"], ["spec.roles.Master.template"], id="one of two paths"
        ),
        pytest.param([], [], id="a kind that creates no pods"),
    ],
)
def test_templates_that_the_policy_does_not_name_are_reported(paths: list[str], counted: list[str]) -> None:
    kind = WorkloadKind("example.com", "FooJob", "foojobs", tuple(map(PodTemplatePath, paths)))
    content = {"kind": "FooJob", "spec": {"roles": {"Master": COUNTED, "Worker": COUNTED}}}
    expected = [
        f"the pods of {each} are not counted: spec.workloadKinds of the policy does not name it" for each in counted
    ]

    assert list(undescribed_templates(content, kind)) == expected


def test_templates_are_searched_for_in_a_bounded_time() -> None:
    kind = WorkloadKind("example.com", "FooJob", "foojobs", (PodTemplatePath("spec.template"),))
    roles = {f"r{number:03}": COUNTED for number in range(100)}
    values: dict[str, Any] = {f"v{number:05}": {} for number in range(20_000)}

    many, large, last = (
        list(undescribed_templates({"kind": "FooJob", "spec": spec}, kind))
        for spec in ({"roles": roles}, {"roles": roles, "values": values}, {"values": {"v": {}}, "z": {"r": COUNTED}})
    )

    assert (len(many), len(last)) == (16, 1)
    assert many[-1].startswith("the pods of spec.roles.r015.template are")
    assert large == []


def test_templates_that_a_policy_does_not_name_are_a_warning_of_commands(run: Run, tmp_path: Path) -> None:
    spec = {"groups": [{"template": TEMPLATE}], "template": TEMPLATE}
    content = {"apiVersion": "example.com/v1", "kind": "FooJob", "metadata": {"name": "a"}, "spec": spec}
    kind = {"group": "example.com", "kind": "FooJob", "resource": "foojobs", "templates": [{"path": "spec.template"}]}
    policy = tmp_path / "policy.yaml"
    document = {"apiVersion": API_VERSION, "kind": "PlacementPolicy", "spec": {"workloadKinds": [kind]}}
    policy.write_text(json.dumps(document))

    outcome = run("mutate", "-f", "-", "--policy", policy, stdin=json.dumps(content))

    assert outcome.code == 0
    assert outcome.errors.splitlines()[0] == (
        "Warning: default/a: the pods of spec.groups.*.template are not counted: spec.workloadKinds of the policy does "
        "not name it"
    )
