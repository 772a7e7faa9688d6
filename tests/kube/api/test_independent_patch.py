"""`jsonpatch` applies patches to copies; its errors show nothing of the document."""

from copy import deepcopy
from typing import Any

import pytest

from webhook.kube.api.independent_patch import PatchError, TooDeepError, independently_patched

POD: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"tolerations": [{"key": "mine"}]}}


def test_the_document_and_the_operations_are_not_changed() -> None:
    document, added = deepcopy(POD), {"key": "ours"}
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/spec/tolerations/-", "value": added},
        {"op": "add", "path": "/spec/tolerations/1/effect", "value": "NoSchedule"},
    ]

    after = independently_patched(document, operations)

    assert after["spec"]["tolerations"] == [{"key": "mine"}, {"key": "ours", "effect": "NoSchedule"}]
    assert (document, added) == (POD, {"key": "ours"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "remove", "path": "/metadata/labels/absent"},
        {"op": "add", "path": "/spec/absent/field", "value": 1},
        {"op": "replace", "path": "/spec/tolerations/9", "value": 1},
        {"op": "frob", "path": "/spec"},
        {"op": "add", "path": "spec", "value": 1},
    ],
    ids=lambda each: f"{each['op']} {each['path']}",
)
def test_an_operation_that_does_not_apply_is_an_error_without_the_content_of_the_document(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(PatchError, match="the patch cannot be applied: ") as failure:
        independently_patched(POD, [wrong])

    assert "web" not in str(failure.value)


def test_a_document_that_is_nested_too_deeply_is_an_error() -> None:
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"a": deep}

    with pytest.raises(TooDeepError):
        independently_patched(deep, [])
