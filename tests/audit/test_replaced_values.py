"""The values that a patch replaces."""

from typing import Any

import pytest

from webhook.audit.field_changes import field_path
from webhook.audit.replaced_values import values_before

POD: dict[str, Any] = {
    "metadata": {"labels": {"app": "x", "a/b": "c"}, "annotations": None},
    "spec": {
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": "mine"}],
        "containers": [{"env": [{"name": "PASSWORD", "value": "secret"}]}],
    },
}


@pytest.mark.parametrize(
    ("operation", "before"),
    [
        ({"op": "replace", "path": "/spec/schedulerName"}, {"/spec/schedulerName": "default-scheduler"}),
        ({"op": "add", "path": "/spec/schedulerName"}, {"/spec/schedulerName": "default-scheduler"}),
        ({"op": "replace", "path": "/metadata/labels/a~1b"}, {"/metadata/labels/a~1b": "c"}),
        ({"op": "remove", "path": "/spec/tolerations/0"}, {"/spec/tolerations/0": {"key": "mine"}}),
        ({"op": "replace", "path": "/spec/tolerations/0/key"}, {"/spec/tolerations/0/key": "mine"}),
        ({"op": "add", "path": "/spec/tolerations/-"}, {}),
        ({"op": "add", "path": "/spec/tolerations/0"}, {}),
        ({"op": "add", "path": "/spec/affinity"}, {}),
        ({"op": "add", "path": "/spec/affinity/nodeAffinity"}, {}),
        ({"op": "add", "path": "/metadata/annotations"}, {}),
        ({"op": "replace", "path": "/spec/tolerations/1"}, {}),
        ({"op": "replace", "path": "/spec/tolerations/7"}, {}),
        ({"op": "replace", "path": "/spec/containers/0/env"}, {}),
        ({"op": "replace", "path": "/spec/containers"}, {}),
        ({"op": "replace", "path": ""}, {}),
    ],
    ids=lambda value: f"{value['op']} {value['path']}" if "op" in value else "",
)
def test_value_before_is_the_replaced_value(operation: dict[str, Any], before: dict[str, Any]) -> None:
    assert values_before(POD, [operation]) == before


@pytest.mark.parametrize(
    "outer", ["spec/template", "spec/jobTemplate/spec/template", "spec/pytorchReplicaSpecs/Worker/template"]
)
@pytest.mark.parametrize("containers", ["containers", "initContainers", "ephemeralContainers"])
def test_containers_of_a_pod_template_are_left_out_and_its_other_values_are_not(outer: str, containers: str) -> None:
    """Their environment does not belong in an audit record."""
    content: dict[str, Any] = {**POD["spec"], containers: POD["spec"]["containers"]}
    template: dict[str, Any] = {"spec": content}
    for key in reversed(outer.split("/")):
        template = {key: template}
    paths = [f"/{outer}/spec/{containers}/0/env", f"/{outer}/spec/{containers}", f"/{outer}/spec/schedulerName"]
    found = values_before(template, [{"op": "replace", "path": path} for path in paths])
    assert found == {paths[-1]: "default-scheduler"}


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("/spec/schedulerName", "spec.schedulerName"),
        ("/metadata/labels/maip.mxsf.io~1a~0b", "metadata.labels[maip.mxsf.io/a~b]"),
        ("/spec/tolerations/-", "spec.tolerations[+]"),
        ("/spec/affinity/terms/2/matchExpressions/-", "spec.affinity.terms[2].matchExpressions[+]"),
        ("", ""),
    ],
)
def test_a_pointer_reads_like_a_field_path(pointer: str, path: str) -> None:
    assert field_path(pointer) == path
