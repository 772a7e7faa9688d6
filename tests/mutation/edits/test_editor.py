"""The editor of pods: creates missing parents, copies what it changes, records an operation for each change."""

from copy import deepcopy
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.frozen import frozen
from webhook.mutation.edits.editor import Path, PodEditor

Call = tuple[str, Any, Path]


def edited(pod: dict[str, Any], *calls: Call) -> PodEditor:
    """The editor of a frozen `pod` after these calls; its operations are proven."""
    editor = PodEditor(frozen(pod))
    for method, value, path in calls:
        values = () if method == "remove" else (deepcopy(value),)
        getattr(editor, method)(*values, *path)
    operations = orjson.loads(orjson.dumps(editor.operations))
    assert jsonpatch.apply_patch(deepcopy(pod), operations) == editor.pod
    return editor


def op(name: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": name, "path": path, "value": value}


def removal(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


CASES: dict[str, tuple[dict[str, Any], list[Call], list[dict[str, Any]]]] = {
    "a value is added": (
        {"spec": {}},
        [("set", "v", ("spec", "schedulerName"))],
        [op("add", "/spec/schedulerName", "v")],
    ),
    "a value is replaced": (
        {"spec": {"schedulerName": "old"}},
        [("set", "v", ("spec", "schedulerName"))],
        [op("replace", "/spec/schedulerName", "v")],
    ),
    "a value is removed": (
        {"spec": {"priority": 0, "schedulerName": "old"}},
        [("remove", None, ("spec", "priority"))],
        [removal("/spec/priority")],
    ),
    "a value that is missing or null is not removed": (
        {"spec": {"priority": None}},
        [("remove", None, ("spec", "priority")), ("remove", None, ("spec", "preemptionPolicy"))],
        [],
    ),
    "a value that was added is removed with its parent's operation": (
        {},
        [("set", 1, ("spec", "priority")), ("set", 2, ("spec", "other")), ("remove", None, ("spec", "priority"))],
        [op("add", "/spec", {"other": 2})],
    ),
    "a null value is added": (
        {"spec": {"schedulerName": None}},
        [("set", "v", ("spec", "schedulerName"))],
        [op("add", "/spec/schedulerName", "v")],
    ),
    "an empty value is replaced": (
        {"spec": {"schedulerName": ""}},
        [("set", "v", ("spec", "schedulerName"))],
        [op("replace", "/spec/schedulerName", "v")],
    ),
    "a missing parent is added with what it holds": (
        {"metadata": {}},
        [("set", "v", ("metadata", "labels", "a")), ("set", "w", ("metadata", "labels", "b"))],
        [op("add", "/metadata/labels", {"a": "v", "b": "w"})],
    ),
    "a null parent is filled": (
        {"metadata": {"labels": None}},
        [("set", "v", ("metadata", "labels", "a"))],
        [op("add", "/metadata/labels", {"a": "v"})],
    ),
    "all parents are missing": (
        {},
        [("append", "x", ("spec", "affinity", "list")), ("append", "y", ("spec", "affinity", "list"))],
        [op("add", "/spec", {"affinity": {"list": ["x", "y"]}})],
    ),
    "the outermost missing parent carries the others": (
        {"spec": {"affinity": {}}},
        [("append", "x", ("spec", "affinity", "a", "b")), ("set", "y", ("spec", "affinity", "a", "c"))],
        [op("add", "/spec/affinity/a", {"b": ["x"], "c": "y"})],
    ),
    "an item is put behind the others": (
        {"spec": {"tolerations": [1]}},
        [("append", 2, ("spec", "tolerations")), ("append", 3, ("spec", "tolerations"))],
        [op("add", "/spec/tolerations/-", 2), op("add", "/spec/tolerations/-", 3)],
    ),
    "an empty list is added to": (
        {"spec": {"tolerations": []}},
        [("append", 1, ("spec", "tolerations"))],
        [op("add", "/spec/tolerations/-", 1)],
    ),
    "a null list is filled": (
        {"spec": {"tolerations": None}},
        [("append", 1, ("spec", "tolerations"))],
        [op("add", "/spec/tolerations", [1])],
    ),
    "an item of a list is changed by its index": (
        {"terms": [{"a": 1}, {"b": []}]},
        [("append", 2, ("terms", 1, "b")), ("set", 3, ("terms", 0, "c"))],
        [op("add", "/terms/1/b/-", 2), op("add", "/terms/0/c", 3)],
    ),
    "a tilde and a slash are escaped, the tilde first": (
        {"metadata": {"labels": {"x": "y"}}},
        [("set", "v", ("metadata", "labels", "a.b/c~d~1"))],
        [op("add", "/metadata/labels/a.b~1c~0d~01", "v")],
    ),
    "a parent with a slash is escaped": (
        {"metadata": {"a/b": {"x": "y"}}},
        [("set", "v", ("metadata", "a/b", "c"))],
        [op("add", "/metadata/a~1b/c", "v")],
    ),
    "operations stand in the order of the edits": (
        {"metadata": {}, "spec": {"tolerations": []}},
        [
            ("append", 1, ("spec", "tolerations")),
            ("set", "v", ("metadata", "labels", "a")),
            ("append", 2, ("spec", "tolerations")),
        ],
        [
            op("add", "/spec/tolerations/-", 1),
            op("add", "/metadata/labels", {"a": "v"}),
            op("add", "/spec/tolerations/-", 2),
        ],
    ),
    "what was added is changed by an operation of its own": (
        {"spec": {"terms": []}},
        [("append", {"a": [1]}, ("spec", "terms")), ("append", 2, ("spec", "terms", 0, "a"))],
        [op("add", "/spec/terms/-", {"a": [1]}), op("add", "/spec/terms/0/a/-", 2)],
    ),
    "what was set is changed by an operation of its own": (
        {"spec": {"x": 1}},
        [("set", {"a": [1]}, ("spec", "y")), ("append", 2, ("spec", "y", "a"))],
        [op("add", "/spec/y", {"a": [1]}), op("add", "/spec/y/a/-", 2)],
    ),
    "a value is set twice": (
        {"spec": {"x": 1}},
        [("set", 2, ("spec", "x")), ("set", 3, ("spec", "x"))],
        [op("replace", "/spec/x", 2), op("replace", "/spec/x", 3)],
    ),
    "a key of the pod itself": ({"a": 1}, [("set", 2, ("b",))], [op("add", "/b", 2)]),
}


@pytest.mark.parametrize(("pod", "calls", "wanted"), CASES.values(), ids=CASES.keys())
def test_operations(pod: dict[str, Any], calls: list[Call], wanted: list[dict[str, Any]]) -> None:
    assert edited(pod, *calls).operations == wanted


def test_no_edit_is_no_operation_and_the_same_pod() -> None:
    editor = edited({"spec": {"a": [1]}})

    assert (editor.operations, editor.pod) == ([], {"spec": {"a": [1]}})


def test_what_is_not_changed_is_not_copied() -> None:
    pod = frozen({"metadata": {"labels": {}}, "spec": {"containers": [{}], "tolerations": []}})
    editor = PodEditor(pod)

    editor.append(1, "spec", "tolerations")

    assert editor.pod["metadata"] is pod["metadata"]
    assert editor.pod["spec"]["containers"] is pod["spec"]["containers"]


def test_one_object_in_two_places_is_changed_in_one() -> None:
    """As a YAML alias makes it."""
    term = {"matchExpressions": [1]}
    editor = PodEditor({"terms": [term, term]})

    editor.append(2, "terms", 1, "matchExpressions")

    assert editor.pod == {"terms": [{"matchExpressions": [1]}, {"matchExpressions": [1, 2]}]}
    assert term == {"matchExpressions": [1]}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ((), {"a": {"b": [{"c": 1}], "n": None}}),
        (("a", "b", 0, "c"), 1),
        (("a", "n"), None),
        (("a", "n", "x", "y"), None),
        (("a", "x"), None),
        (("x", "y", 0), None),
    ],
    ids=["the pod", "a value", "null", "under null", "missing", "under a missing one"],
)
def test_get_is_none_where_there_is_no_value(path: Path, wanted: object) -> None:
    assert PodEditor({"a": {"b": [{"c": 1}], "n": None}}).get(*path) == wanted


def test_get_sees_what_was_edited() -> None:
    editor = PodEditor({})
    editor.append({"x": 1}, "spec", "list")

    assert editor.get("spec", "list", 0, "x") == 1


keys = st.sampled_from(["a", "b/c", "d~e"])
lists = st.none() | st.lists(st.integers(0, 9), max_size=2)
objects = st.none() | st.dictionaries(keys, st.none() | st.integers(0, 9), max_size=2)
pods = st.fixed_dictionaries(
    {},
    optional={"objects": st.none() | st.dictionaries(keys, objects), "lists": st.none() | st.dictionaries(keys, lists)},
)
calls = st.tuples(st.just("set"), st.integers(10, 19), st.tuples(st.just("objects"), keys, keys)) | st.tuples(
    st.just("append"), st.integers(10, 19), st.tuples(st.just("lists"), keys)
)


@given(pods, st.lists(calls, max_size=6))
def test_operations_are_equivalent_to_the_edits(pod: dict[str, Any], chosen: list[Call]) -> None:
    editor = edited(pod, *chosen)

    for method, value, path in chosen:
        assert method == "set" or value in editor.get(*path)
    last = {path: value for method, value, path in chosen if method == "set"}
    assert {path: editor.get(*path) for path in last} == last
