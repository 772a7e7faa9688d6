"""Errors of input: `where: what: value; remedy`."""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.documents.field import (
    FieldError,
    InvalidInput,
    RejectedFieldError,
    forbidden,
    invalid,
    refused,
    required,
    shown,
    unsupported,
)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        pytest.param(
            invalid("spec.weight", 0, "must be above 0"), "spec.weight: Invalid value: 0; must be above 0", id="invalid"
        ),
        pytest.param(invalid("a", None, "must be text"), "a: Invalid value: null; must be text", id="null"),
        pytest.param(invalid("a", "节点", "no"), 'a: Invalid value: "节点"; no', id="other scripts are readable"),
        pytest.param(
            invalid("a", object(), "no"),
            "a: Invalid value: object; no",
            id="what JSON cannot hold is named by its type",
        ),
        pytest.param(required("a.b", "must be set"), "a.b: Required value: must be set", id="required"),
        pytest.param(forbidden("a.b", "unknown field"), "a.b: Forbidden: unknown field", id="forbidden"),
        pytest.param(
            unsupported("a", "x", ["y", "z"]), 'a: Unsupported value: "x"; supported values: "y", "z"', id="unsupported"
        ),
    ],
)
def test_an_error_names_field_value_and_remedy(error: FieldError, wanted: str) -> None:
    assert str(error) == wanted


@pytest.mark.parametrize(
    ("path", "moved", "wanted"),
    [
        ("spec.a", lambda error: error.prefixed("f.yaml"), "f.yaml: spec.a"),
        ("", lambda error: error.prefixed("f.yaml"), "f.yaml"),
        ("request.object.spec.a", lambda error: error.relocated("f.yaml", "request.object"), "f.yaml: spec.a"),
        ("request.object", lambda error: error.relocated("f.yaml", "request.object"), "f.yaml"),
        ("spec.a", lambda error: error.relocated("f.yaml", "request.object"), "f.yaml: spec.a"),
    ],
    ids=["a field under a file", "the whole file", "without the outer path", "the outer path itself", "another path"],
)
def test_an_error_can_be_put_under_a_place(path: str, moved: object, wanted: str) -> None:
    assert callable(moved)
    assert moved(invalid(path, 1, "no")).path == wanted


def test_each_error_is_on_its_own_line() -> None:
    error = InvalidInput([required("a", "must be set"), invalid("b", 1, "must be text")])

    assert [each.path for each in error.errors] == ["a", "b"]
    assert str(error) == "a: Required value: must be set\nb: Invalid value: 1; must be text"


@pytest.mark.parametrize("length", [118, 119, 10_000])
def test_a_shown_value_is_one_short_line(length: int) -> None:
    text = shown("x" * length)

    assert len(text) == 120
    assert text.endswith('"' if length == 118 else "…")


def test_a_value_with_line_breaks_is_shown_on_one_line() -> None:
    assert shown("a\nb\r") == '"a\\nb\\r"'


class Counted(list[Any]):
    """A list that counts how many of its items were looked at."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.read += 1
            yield item


def test_only_the_shown_part_of_a_value_is_rendered() -> None:
    items = Counted(range(1_000_000))

    assert shown({"items": items}).startswith('{"items": [0, 1, 2, ')
    assert items.read < 120


@pytest.mark.parametrize(
    "value", ["x" * 3_000_000, ["x" * 3_000_000], {"a": {"b": "x" * 3_000_000}}, {"x" * 3_000_000: 1}], ids=range(4)
)
def test_of_a_long_text_only_its_beginning_is_rendered(value: object) -> None:
    error = invalid("a", value, "no")
    tracemalloc.start()
    try:
        text = str(error)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) < 200
    assert peak_bytes < 20_000


def test_deep_value_is_cut_as_any_other() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    assert shown(value) == "[" * 119 + "…"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(json_values, st.integers(2, 130))
def test_shown_value_is_the_beginning_of_its_json(value: object, limit: int) -> None:
    whole = json.dumps(value, ensure_ascii=False)

    assert shown(value, limit) == (whole if len(whole) <= limit else whole[: limit - 1] + "…")


@pytest.mark.parametrize(
    "error",
    [
        invalid("metadata.annotations[a\x1b]0;\n\u202e]", "no", "no"),
        invalid("a", "\x9b\x1b\u2066\n\ud800", "no"),
        required("a", "must \x1b[2J\n be set"),
    ],
    ids=["path", "value", "detail"],
)
def test_error_is_one_line_without_control_characters(error: FieldError) -> None:
    assert str(error).isprintable()


def test_error_is_short_for_every_path() -> None:
    assert len(str(invalid("metadata.labels[" + "x" * 3_000_000, 1, "must be text"))) < 1200


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            RejectedFieldError("spec.a", "Invalid value", "x" * 200, "too long"),
            f'spec.a: Invalid value: "{"x" * 200}": too long',
        ),
        (RejectedFieldError("spec.a", "Required value", None, ""), "spec.a: Required value"),
        (RejectedFieldError("spec.a", "Forbidden", 1, "no"), "spec.a: Forbidden: no"),
        (refused("pods", "a", "no"), 'pods "a" is forbidden: no'),
        (refused("pods", "a", "no").prefixed("f.yaml"), 'f.yaml: pods "a" is forbidden: no'),
    ],
)
def test_the_message_of_the_api_server_is_kept(error: FieldError, text: str) -> None:
    assert str(error) == text
