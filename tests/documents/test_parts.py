"""Parts of unvalidated objects: another type than the expected one is read as empty."""

from typing import Any

import pytest

from webhook.documents.parts import file_in, items_at, listed, object_at, texts


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "b"}, {"a": "b"}),
        ({"a": 1, 2: None}, {"a": "1", "2": "None"}),
        (None, {}),
        (["a"], {}),
        ("a", {}),
    ],
)
def test_a_map_of_texts(value: object, expected: dict[str, str]) -> None:
    assert texts({"spec": {"limits": value}}, "spec", "limits") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [([{"a": 1}, "b", None, {}], [{"a": 1}, {}]), ({"a": {}}, []), (None, []), ("a", [])],
)
def test_a_list_of_objects(value: object, expected: list[dict[str, Any]]) -> None:
    assert listed({"spec": {"items": value}}, "spec", "items") == expected


def test_a_list_of_any_items() -> None:
    assert items_at({"spec": {"items": [1, None]}}, "spec", "items") == [1, None]
    assert items_at({"spec": {"items": "a"}}, "spec", "items") == items_at({}, "spec", "items") == []


def test_what_is_no_object_reads_as_an_empty_one() -> None:
    inner = {"a": 1}

    assert object_at({"spec": inner}, "spec") is inner
    assert object_at({"spec": 3}, "spec") == object_at({}, "spec") == object_at({"spec": 3}, "spec", "a") == {}


ALIASES = "a: &x [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nb: [" + ", ".join(["*x"] * 100) + "]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\n", {"a": 1}, id="an object"),
        pytest.param("a: 1\n---\nb: 2\n", {}, id="two"),
        pytest.param("", {}, id="none"),
        pytest.param("a: [", {}, id="not YAML"),
        pytest.param("text", {}, id="no object"),
        pytest.param(ALIASES, {}, id="too many aliases"),
        pytest.param(5, {}, id="no text"),
    ],
)
def test_the_object_in_a_file_of_a_config_map(text: object, expected: dict[str, Any]) -> None:
    config_map = {"data": {"other": "b: 2\n", "scheduler.yaml": text}}

    assert file_in(config_map, "scheduler.yaml") == expected
    assert file_in(config_map, "absent") == {}
