"""A large JSON list is read a few items at a time, and comes to the same as parsed at once."""

import json
import tracemalloc
from io import BytesIO
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.random.random_json import json_values
from webhook.documents import json_text as json_list
from webhook.documents.documents import Document, parse, parse_list
from webhook.documents.field import InvalidInput
from webhook.documents.json_text import NotAListError, read_body

_LAYOUTS: dict[str, dict[str, Any]] = {
    "kubectl": {"indent": 4, "separators": (",", ": ")},
    "one line": {"separators": (",", ":")},
    "Python": {},
}
_MISLEADING = st.sampled_from(
    [
        {"kind": "Pod", "items": [{"kind": "a"}, {"kind": "b"}]},
        {"kind": "PodList", "items": [{"kind": "Pod"}, {"metadata": {}}]},
        {"kind": "Pod", "text": '},{"kind":"Pod"}],"items":['},
        {"kind": "节点"},
        {"metadata": {"name": "first of another kind"}},
    ]
)
_ITEMS = st.lists(
    _MISLEADING | st.dictionaries(st.text(max_size=4), json_values, max_size=3).map(lambda each: {"kind": "x"} | each),
    max_size=8,
)


def _read(text: bytes) -> list[Document] | None:
    try:
        return list(parse_list(BytesIO(text), "f"))
    except NotAListError:
        return None


@given(items=_ITEMS, layout=st.sampled_from([*_LAYOUTS]), is_typed=st.booleans(), is_last=st.booleans())
def test_a_list_in_blocks_has_the_documents_of_the_whole_text(
    items: list[Any], layout: str, is_typed: bool, is_last: bool
) -> None:
    about = {"apiVersion": "v1", "kind": "PodList" if is_typed else "List"}
    content = {**about, "items": items} if is_last else {"items": items, **about}
    text = json.dumps(content, ensure_ascii=False, **_LAYOUTS[layout]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_list, "_BLOCK_BYTES", 60)
        found = _read(text)
    assert found is None or found == parse(text, "f")


@pytest.mark.parametrize("layout", _LAYOUTS.values(), ids=_LAYOUTS.keys())
def test_a_list_of_a_program_is_read_in_blocks(layout: dict[str, Any]) -> None:
    items = [{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "x" * 90}] * 50}}] * 200
    text = json.dumps({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}, **layout).encode()
    assert _read(text) == parse(text, "f")


@pytest.mark.parametrize(("parts", "is_cut"), [(0, True), (1, True), (7, True), (8, False)])
def test_a_list_is_cut_before_an_item_though_some_of_its_parts_begin_as_items(
    monkeypatch: pytest.MonkeyPatch, parts: int, *, is_cut: bool
) -> None:
    """Each block ends with an item, whose parts look like items."""
    items = [{"kind": "Pod", "number": number, "parts": [{"kind": "part"}] * parts} for number in range(100, 140)]
    text = orjson.dumps({"kind": "List", "items": items})
    item_bytes = len(orjson.dumps(items[0])) + 1
    monkeypatch.setattr(json_list, "_BLOCK_BYTES", item_bytes)
    monkeypatch.setattr(json_list, "_MOST_BYTES", 4 * item_bytes)

    assert _read(text) == (parse(text, "f") if is_cut else None)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("kind: List\nitems:\n- kind: Pod\n", id="YAML"),
        pytest.param('{"kind": "List", "items": []}', id="an empty list"),
        pytest.param('{"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Pod"]}', id="a broken item"),
        pytest.param('{"kind": "List", "items": [{"kind": "Pod"}]', id="a list that ends too soon"),
        pytest.param('{"kind": "List", "items": [{"kind": "\\ud800"}]}', id="half of a surrogate pair"),
        pytest.param('{"kind": "Pod", "items": [{"kind": "Pod"}]}', id="no list"),
        pytest.param(
            '{"kind": "List", "inner": {"items": [{"kind": "Pod"}]}, "items": 5}', id="items of another object"
        ),
        pytest.param('{"kind": "List", "items": [{"a": 1}]}\n{"kind": "List", "items": [{"a": 1}]}', id="two lists"),
    ],
)
def test_other_text_has_to_be_parsed_as_a_whole(text: str) -> None:
    assert _read(text.encode()) is None


def test_an_item_that_is_no_object_is_reported_with_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"f: items\[1\]: Invalid value: 7; must be an object"):
        _read(b'{"kind": "List", "items": [{"kind": "Pod"}, 7]}')


@pytest.mark.slow
def test_items_are_not_in_memory_together() -> None:
    items = [{"kind": "Pod", "number": number, "texts": ["text"] * 100} for number in range(8_000)]
    file = BytesIO(orjson.dumps({"kind": "List", "items": items}))
    del items
    tracemalloc.start()
    try:
        count = sum(1 for _ in parse_list(file, "f"))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 8_000
    assert peak_bytes < len(file.getbuffer()) / 2


def test_the_error_of_a_body_has_its_beginning_and_the_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_body(b'{"kind":\n' + b"x" * 100)

    start = r"{\"kind\":\n" + "x" * 51
    assert str(refused.value).startswith(f'body: Invalid value: "{start}"; must be JSON: ')
    assert str(refused.value).endswith(": line 2 column 1")
