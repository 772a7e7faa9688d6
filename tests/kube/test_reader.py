"""Raw objects are read with the types of the API; all type errors are reported together."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.reader import Reader, reading


def _object(reader: Reader, key: str) -> Mapping[str, Any]:
    return reader.object(key).raw


def _objects(reader: Reader, key: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(each.at("x"), each.raw) for each in reader.objects(key)]


def _by_name(reader: Reader, key: str) -> list[tuple[str, str, Mapping[str, Any]]]:
    return [(name, each.at("x"), each.raw) for name, each in reader.objects_by_name(key)]


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        pytest.param(_object, {"a": 1}, {"a": 1}, id="object"),
        pytest.param(_object, None, {}, id="no object"),
        pytest.param(_objects, [{"a": 1}], [("f[0].x", {"a": 1})], id="list"),
        pytest.param(_objects, None, [], id="no list"),
        pytest.param(_by_name, {"n": {"a": 1}}, [("n", "f[n].x", {"a": 1})], id="object of objects"),
        pytest.param(_by_name, {"n": None}, [("n", "f[n].x", {})], id="null in an object of objects"),
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
def test_value_of_the_right_type_is_read(read: Callable[[Reader, str], Any], value: Any, expected: Any) -> None:
    reader = Reader({"f": value})
    assert read(reader, "f") == expected
    reader.finish()


@pytest.mark.parametrize(
    ("read", "value", "error"),
    [
        pytest.param(_object, [], "f: Invalid value: []; must be an object", id="object"),
        pytest.param(_objects, {}, "f: Invalid value: {}; must be a list", id="list"),
        pytest.param(_objects, ["a"], 'f[0]: Invalid value: "a"; must be an object', id="item"),
        pytest.param(_objects, [None], "f[0]: Invalid value: null; must be an object", id="null item"),
        pytest.param(_by_name, {"n": 1}, "f[n]: Invalid value: 1; must be an object", id="named object"),
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
def test_value_of_another_type_is_reported(read: Callable[[Reader, str], Any], value: Any, error: str) -> None:
    reader = Reader({"f": value})
    read(reader, "f")
    with pytest.raises(InvalidInput) as caught:
        reader.finish()
    assert str(caught.value) == error


def test_error_within_objects_has_the_whole_path() -> None:
    reader = Reader({"containers": [{}, {"ports": [{"name": 1}]}]}, step="spec")
    reader.objects("containers")[1].objects("ports")[0].text("name")
    assert [error.path for error in reader.errors] == ["spec.containers[1].ports[0].name"]


def test_error_of_a_field_read_twice_is_reported_once() -> None:
    reader = Reader({"f": 1, "g": 1})
    for key in ("f", "f", "g"):
        reader.text(key)
    with pytest.raises(InvalidInput) as caught:
        reader.finish()
    assert [error.path for error in caught.value.errors] == ["f", "g"]


def test_item_that_is_no_object_reads_as_empty_in_its_place() -> None:
    reader = Reader({"f": [{"a": 1}, 7, {"b": 2}]})
    assert [each.raw for each in reader.objects("f")] == [{"a": 1}, {}, {"b": 2}]
    assert [error.path for error in reader.errors] == ["f[1]"]


@pytest.mark.parametrize(("items", "checks"), [(0, 0), (63, 0), (64, 1), (127, 1), (128, 2)])
def test_check_is_called_once_in_64_items(items: int, checks: int) -> None:
    calls: list[None] = []
    reader = Reader({"spec": {"f": [{}] * items, "g": ["a"] * items}}, check=lambda: calls.append(None))
    spec = reader.object("spec")
    spec.objects("f")
    assert len(calls) == checks
    spec.texts("g")
    assert len(calls) == 2 * checks


class _Named(NamedTuple):
    name: str

    @classmethod
    @reading
    def of(cls, content: Reader) -> "_Named":
        return cls(content.object("metadata").text("name"))


def test_reading_takes_the_raw_object_and_raises_its_errors() -> None:
    assert _Named.of({"metadata": {"name": "a"}}) == _Named("a")
    with pytest.raises(InvalidInput, match=r"metadata.name: Invalid value: 1; must be text"):
        _Named.of({"metadata": {"name": 1}})
