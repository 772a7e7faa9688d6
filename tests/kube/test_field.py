"""Errors of input: `where: what: value; remedy`."""

import pytest

from webhook.kube.field import FieldError, InvalidInput, forbidden, invalid, required, shown, unsupported


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
        ("spec.a", lambda error: error.under("f.yaml"), "f.yaml: spec.a"),
        ("", lambda error: error.under("f.yaml"), "f.yaml"),
        ("request.object.spec.a", lambda error: error.within("f.yaml", "request.object"), "f.yaml: spec.a"),
        ("request.object", lambda error: error.within("f.yaml", "request.object"), "f.yaml"),
        ("spec.a", lambda error: error.within("f.yaml", "request.object"), "f.yaml: spec.a"),
    ],
    ids=["a field under a file", "the whole file", "without the outer path", "the outer path itself", "another path"],
)
def test_an_error_can_be_put_under_a_place(path: str, moved: object, wanted: str) -> None:
    assert callable(moved)
    assert moved(invalid(path, 1, "no")).path == wanted


def test_all_errors_are_told_each_on_its_line() -> None:
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
