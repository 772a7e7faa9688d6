"""A pod whose fields have other types than those of a Pod is rejected with the names of the fields."""

from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from webhook.documents.field import InvalidInput
from webhook.kube.shape import POD, Each, check_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def errors(pod: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        check_pod(pod)
    return [str(error) for error in refused.value.errors]


def nested(value: Any, *path: str | int) -> Any:
    """Return `value` under `path`: text steps are keys, numbers lists of one item."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"metadata": {}, "spec": {}}, id="the least pod"),
        pytest.param(make_pod().obj(), id="a pod"),
        pytest.param(
            {"metadata": {"labels": None, "annotations": None}, "spec": {"affinity": None}}, id="null is absent"
        ),
        pytest.param({"metadata": {}, "spec": {"affinity": {"nodeAffinity": {REQUIRED: {}}}}}, id="a field is absent"),
        pytest.param({"metadata": {"new": 1}, "spec": {"newer": [{}]}, "kind": 3}, id="fields that are not read"),
        pytest.param({"metadata": {}, "spec": {"tolerations": [{"tolerationSeconds": 5}]}}, id="a number that is one"),
        pytest.param({"metadata": {"labels": {}}, "spec": {"tolerations": []}}, id="empty ones"),
    ],
)
def test_valid_pod_passes(pod: dict[str, Any]) -> None:
    check_pod(pod)


EXPRESSIONS = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", 0, "matchExpressions", 0)
POD_TERM = ("spec", "affinity", "podAffinity", PREFERRED, 0, "podAffinityTerm")
POD_TERM_PATH = f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm"
PATHS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        (("metadata",), [], "metadata: Invalid value: []; must be an object"),
        (("metadata", "name"), 1, "metadata.name: Invalid value: 1; must be text"),
        (("metadata", "labels"), "a=b", 'metadata.labels: Invalid value: "a=b"; must be an object'),
        (("metadata", "labels", "a"), 8, "metadata.labels[a]: Invalid value: 8; must be text; put it in quotes"),
        (
            ("metadata", "annotations", "a/b"),
            True,
            "metadata.annotations[a/b]: Invalid value: true; must be text; put it in quotes",
        ),
        (
            ("metadata", "annotations", "a"),
            None,
            "metadata.annotations[a]: Invalid value: null; must be text; put it in quotes",
        ),
        (("metadata", "ownerReferences"), {}, "metadata.ownerReferences: Invalid value: {}; must be a list"),
        (
            ("metadata", "ownerReferences", 0),
            None,
            "metadata.ownerReferences[0]: Invalid value: null; must not be null",
        ),
        (
            ("spec", "nodeSelector", "a"),
            1.5,
            "spec.nodeSelector[a]: Invalid value: 1.5; must be text; put it in quotes",
        ),
        (("spec", "schedulerName"), [], "spec.schedulerName: Invalid value: []; must be text"),
        (("spec", "tolerations"), "x", 'spec.tolerations: Invalid value: "x"; must be a list'),
        (("spec", "tolerations", 0), "x", 'spec.tolerations[0]: Invalid value: "x"; must be an object'),
        (("spec", "tolerations", 0, "value"), True, "spec.tolerations[0].value: Invalid value: true; must be text"),
        (("spec", "affinity"), [], "spec.affinity: Invalid value: []; must be an object"),
        (EXPRESSIONS, "x", f'{PATHS}: Invalid value: "x"; must be an object'),
        ((*EXPRESSIONS, "values"), "x", f'{PATHS}.values: Invalid value: "x"; must be a list of texts'),
        ((*EXPRESSIONS, "values"), [1], f"{PATHS}.values: Invalid value: [1]; must be a list of texts"),
        ((*EXPRESSIONS, "values"), ["1", None], f'{PATHS}.values: Invalid value: ["1", null]; must be a list of texts'),
        (
            (*POD_TERM, "labelSelector", "matchLabels", "a"),
            1,
            f"{POD_TERM_PATH}.labelSelector.matchLabels[a]: Invalid value: 1; must be text; put it in quotes",
        ),
        (
            (*POD_TERM, "namespaces"),
            "a",
            f'{POD_TERM_PATH}.namespaces: Invalid value: "a"; must be a list of texts',
        ),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_value_of_another_type_is_named(path: tuple[str | int, ...], value: object, wanted: str) -> None:
    pod = {"metadata": {}, "spec": {}} | nested(value, *path)

    assert errors(pod) == [wanted]


def test_every_wrong_field_is_named_at_once() -> None:
    pod = {"metadata": {"name": 1, "labels": {"a": 1, "b": 2}}, "spec": {"tolerations": [{"key": 1}, 7]}}

    assert [error.partition(": ")[0] for error in errors(pod)] == [
        "metadata.name",
        "metadata.labels[a]",
        "metadata.labels[b]",
        "spec.tolerations[0].key",
        "spec.tolerations[1]",
    ]


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        ({}, ["metadata: Required value: a Pod has one", "spec: Required value: a Pod has one"]),
        ({"metadata": {}, "spec": None}, ["spec: Required value: a Pod has one"]),
    ],
    ids=["neither", "null"],
)
def test_metadata_and_spec_must_be_there(pod: dict[str, Any], wanted: list[str]) -> None:
    assert errors(pod) == wanted


def shaped_fields(shape: Any, *path: str | int) -> list[tuple[str | int, ...]]:
    """Yield the path of every field in the shape."""
    if isinstance(shape, Each):
        return [path, *shaped_fields(shape.item, *path, 0)]
    if isinstance(shape, dict):
        inner = [found for key, each in shape.items() for found in shaped_fields(each, *path, key)]
        return [path, *inner] if path else inner
    return [(*path, "key")] if shape == dict[str, str] else [path]


@pytest.mark.parametrize("path", shaped_fields(dict(POD)), ids=lambda path: ".".join(map(str, path)))
def test_no_field_of_the_shape_may_be_a_number(path: tuple[str | int, ...]) -> None:
    assert len(errors({"metadata": {}, "spec": {}} | nested(7, *path))) == 1
