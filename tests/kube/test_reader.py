"""Raw objects are read with the types of the API; all type errors are reported together."""

from collections.abc import Callable
from typing import Any

import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.reader import Reader


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        pytest.param(Reader.object, {"a": 1}, {"a": 1}, id="object"),
        pytest.param(Reader.object, None, {}, id="no object"),
        pytest.param(Reader.objects, [{"a": 1}], [("f[0]", {"a": 1})], id="list"),
        pytest.param(Reader.objects, None, [], id="no list"),
        pytest.param(Reader.text, "a", "a", id="text"),
        pytest.param(Reader.text, None, "", id="no text"),
        pytest.param(Reader.texts, ["a", "b"], ("a", "b"), id="texts"),
        pytest.param(Reader.texts, None, (), id="no texts"),
        pytest.param(Reader.text_map, {"a": "b"}, {"a": "b"}, id="map"),
        pytest.param(Reader.integer, 5, 5, id="integer"),
        pytest.param(Reader.integer, None, 0, id="no integer"),
        pytest.param(Reader.boolean, True, True, id="true"),
        pytest.param(Reader.boolean, None, False, id="no boolean"),
    ],
)
def test_value_of_the_right_type_is_read(read: Callable[[Reader, Any, str], Any], value: Any, expected: Any) -> None:
    reader = Reader()
    assert read(reader, value, "f") == expected
    reader.finish()


@pytest.mark.parametrize(
    ("read", "value", "error"),
    [
        pytest.param(Reader.object, [], "f: Invalid value: []; must be an object", id="object"),
        pytest.param(Reader.objects, {}, "f: Invalid value: {}; must be a list", id="list"),
        pytest.param(Reader.objects, ["a"], 'f[0]: Invalid value: "a"; must be an object', id="item"),
        pytest.param(Reader.objects, [None], "f[0]: Invalid value: null; must be an object", id="null item"),
        pytest.param(Reader.text, 1, "f: Invalid value: 1; must be text; put it in quotes", id="text"),
        pytest.param(Reader.texts, "a", 'f: Invalid value: "a"; must be a list of texts', id="texts"),
        pytest.param(Reader.texts, [1], "f[0]: Invalid value: 1; must be text; put it in quotes", id="one of texts"),
        pytest.param(Reader.text_map, {"a": 1}, "f[a]: Invalid value: 1; must be text; put it in quotes", id="label"),
        pytest.param(Reader.integer, True, "f: Invalid value: true; must be an integer", id="integer"),
        pytest.param(
            Reader.integer, 2**63, f"f: Invalid value: {2**63}; must be an integer of 64 bits", id="integer, too large"
        ),
        pytest.param(Reader.boolean, "yes", 'f: Invalid value: "yes"; must be true or false', id="boolean"),
    ],
)
def test_value_of_another_type_is_reported(read: Callable[[Reader, Any, str], Any], value: Any, error: str) -> None:
    reader = Reader()
    read(reader, value, "f")
    with pytest.raises(InvalidInput) as caught:
        reader.finish()
    assert str(caught.value) == error


def test_error_of_a_field_read_twice_is_reported_once() -> None:
    reader = Reader()
    reader.text(1, "f")
    reader.text(1, "f")
    reader.text(1, "g")
    with pytest.raises(InvalidInput) as caught:
        reader.finish()
    assert [error.path for error in caught.value.errors] == ["f", "g"]


def test_item_that_is_no_object_reads_as_empty_in_its_place() -> None:
    reader = Reader()
    assert reader.objects([{"a": 1}, 7, {"b": 2}], "f") == [("f[0]", {"a": 1}), ("f[1]", {}), ("f[2]", {"b": 2})]
    assert [error.path for error in reader.errors] == ["f[1]"]


@pytest.mark.parametrize(("items", "checks"), [(0, 0), (63, 0), (64, 1), (127, 1), (128, 2)])
def test_check_is_called_once_in_64_items(items: int, checks: int) -> None:
    calls: list[None] = []
    reader = Reader(lambda: calls.append(None))
    reader.objects([{}] * items, "f")
    assert len(calls) == checks
    reader.texts(["a"] * items, "f")
    assert len(calls) == 2 * checks
