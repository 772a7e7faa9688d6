"""The values that a record holds of a patched object, and the fields before and after the patch."""

from typing import Any

import pytest

from webhook.audit.field_changes import UNKNOWN, FieldChange, field_changes
from webhook.kube.api.independent_patch import PatchError

Operations = list[dict[str, Any]]


def changes(*operations: dict[str, Any], before: dict[str, Any] | None = None) -> list[FieldChange]:
    return field_changes(operations, before or {})


def test_a_replaced_value_is_there_before_and_after() -> None:
    operation = {"op": "replace", "path": "/spec/schedulerName", "value": "volcano"}

    found = changes(operation, before={"/spec/schedulerName": "default-scheduler"})

    assert found == [FieldChange("/spec/schedulerName", "default-scheduler", "volcano")]


def test_a_removed_value_is_there_before() -> None:
    found = changes({"op": "remove", "path": "/spec/priority"}, before={"/spec/priority": 0})

    assert found == [FieldChange("/spec/priority", 0, None)]


def test_a_new_field_holds_what_later_operations_put_into_it() -> None:
    found = changes(
        {"op": "add", "path": "/spec/tolerations", "value": [{"key": "a"}]},
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b"}},
        {"op": "add", "path": "/spec/tolerations/0/value", "value": "v"},
    )

    assert found == [FieldChange("/spec/tolerations", None, [{"key": "a", "value": "v"}, {"key": "b"}])]


def test_items_appended_to_a_list_of_the_user_are_one_change() -> None:
    found = changes(
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "a"}},
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b"}},
    )

    assert found == [FieldChange("/spec/tolerations", None, [{"key": "a"}, {"key": "b"}], is_appended=True)]


def test_keys_of_labels_and_items_of_lists_are_told_apart() -> None:
    found = changes(
        {"op": "add", "path": "/metadata/labels/0", "value": "zero"},
        {"op": "add", "path": "/metadata/annotations/a.io~1b", "value": "c"},
        {"op": "add", "path": "/spec/containers/2/resources/limits", "value": {"cpu": "1"}},
    )

    assert found == [
        FieldChange("/metadata/labels/0", None, "zero"),
        FieldChange("/metadata/annotations/a.io~1b", None, "c"),
        FieldChange("/spec/containers/2/resources/limits", None, {"cpu": "1"}),
    ]


def test_a_replaced_value_that_the_record_does_not_hold_is_unknown() -> None:
    found = changes({"op": "replace", "path": "/spec/containers/0/image", "value": "b"})

    assert found == [FieldChange("/spec/containers/0/image", UNKNOWN, "b")]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/spec/tolerations/999999999/key", "value": 1}],
        [{"op": "add", "path": "spec", "value": 1}],
        [{"op": "frob", "path": "/spec"}],
        [{"op": "add", "path": "/spec/x"}],
        [{"path": "/spec/x"}],
        [{"op": "add", "value": 1}],
        [{"op": "add", "path": "/spec/x", "value": 1}, {"op": "add", "path": "/spec/x/y/z", "value": 1}],
    ],
    ids=str,
)
def test_a_record_that_was_altered_is_an_error(operations: Operations) -> None:
    with pytest.raises(PatchError, match="the patch cannot be applied"):
        changes(*operations)
