"""Text into documents: what kubectl takes is taken, what JSON cannot hold is refused, and errors name their place."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.documents import documents
from webhook.documents.documents import Document, field, parse
from webhook.documents.field import InvalidInput


def contents(text: str | bytes) -> list[dict[str, Any]]:
    return [document.content for document in parse(text, "pods.yaml")]


def error(text: str | bytes) -> str:
    with pytest.raises(InvalidInput) as refused:
        parse(text, "pods.yaml")
    return str(refused.value)


READABLE: dict[str, tuple[str | bytes, list[dict[str, Any]]]] = {
    "one YAML document": ("kind: Pod\n", [{"kind": "Pod"}]),
    "one JSON object": ('{"kind": "Pod"}', [{"kind": "Pod"}]),
    "JSON after blanks": ('\n\t {"kind": "Pod"}\n', [{"kind": "Pod"}]),
    "bytes": (b'{"kind": "Pod"}', [{"kind": "Pod"}]),
    "a flow mapping that is no JSON": ("{kind: Pod, a: [1, 2,]}", [{"kind": "Pod", "a": [1, 2]}]),
    "several documents": ("a: 1\n---\nb: 2\n---\nc: 3\n", [{"a": 1}, {"b": 2}, {"c": 3}]),
    "several documents that begin as JSON": ('{"a": 1}\n---\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    "a stream of JSON objects": ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    "null documents are passed over": ("---\n---\na: 1\n---\nnull\n---\n~\n", [{"a": 1}]),
    "an empty text": ("", []),
    "comments alone": ("# nothing\n\n# here\n", []),
    "a byte order mark": (b"\xef\xbb\xbfa: 1", [{"a": 1}]),
    "UTF-8": ("a: 节点".encode(), [{"a": "节点"}]),
    "CRLF": ("a: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}]),
    "an anchor and its alias": ("a: &x {k: v}\nb: *x\n", [{"a": {"k": "v"}, "b": {"k": "v"}}]),
    "a merge key": (
        "a: &x {k: v, l: w}\nb: {<<: *x, k: own}\n",
        [{"a": {"k": "v", "l": "w"}, "b": {"k": "own", "l": "w"}}],
    ),
    "a merge of a merge further out": (
        "a: &x {k: v}\nb:\n  c: &y {<<: *x, k: own}\nd: {<<: *y}\n",
        [{"a": {"k": "v"}, "b": {"c": {"k": "own"}}, "d": {"k": "own"}}],
    ),
    "the YAML directive of 1.1": ("%YAML 1.1\n---\na: off\n", [{"a": False}]),
}


@pytest.mark.parametrize(("text", "wanted"), READABLE.values(), ids=READABLE.keys())
def test_text_is_read(text: str | bytes, wanted: list[dict[str, Any]]) -> None:
    assert contents(text) == wanted


@pytest.mark.parametrize(("text", "wanted"), READABLE.values(), ids=READABLE.keys())
def test_the_reader_without_libyaml_agrees(
    without_libyaml: ModuleType, text: str | bytes, wanted: list[dict[str, Any]]
) -> None:
    assert [document.content for document in without_libyaml.parse(text, "pods.yaml")] == wanted


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9)
texts = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xD7FF, exclude_categories=["C", "Z"]), max_size=8)
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(texts, values, max_size=3))
def test_json_parsed_as_yaml_has_the_same_value(content: dict[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False)

    assert contents("---\n" + text) == contents(text) == [content]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            '{"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Node"}]}',
            [("f: items[0]", {"kind": "Pod"}), ("f: items[1]", {"kind": "Node"})],
            id="a v1 List is its items",
        ),
        pytest.param("kind: List\nitems: []\n", [], id="an empty list is nothing"),
        pytest.param('{"kind": "List", "items": null}', [], id="an empty list as Go writes it, too"),
        pytest.param(
            '{"kind": "NodeList", "items": []}',
            [("f", {"kind": "NodeList", "items": []})],
            id="an empty list of one kind says that there is none",
        ),
        pytest.param(
            "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: n1}}]\n",
            [("f: items[0]", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})],
            id="items of a typed list get its kind and version",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{kind: ReplicaSet}]\n",
            [("f: items[0]", {"kind": "ReplicaSet"})],
            id="an item with a kind keeps it",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{}]\n",
            [("f: items[0]", {"apiVersion": "apps/v1", "kind": "Deployment"})],
            id="an item of a typed list is of its version",
        ),
        pytest.param(
            "kind: List\nitems: [{kind: PodList, items: [{}, {}]}, {kind: Pod}]\n",
            [
                ("f: items[0]: items[0]", {"apiVersion": "v1", "kind": "Pod"}),
                ("f: items[0]: items[1]", {"apiVersion": "v1", "kind": "Pod"}),
                ("f: items[1]", {"kind": "Pod"}),
            ],
            id="a list in a list",
        ),
        pytest.param("kind: List\n", [("f", {"kind": "List"})], id="a kind that ends so, without items, is no list"),
        pytest.param("items: [1]\n", [("f", {"items": [1]})], id="items without such a kind are no list"),
        pytest.param(
            "a: 1\n---\nkind: List\nitems: [{kind: Pod}]\n",
            [("f, document 1", {"a": 1}), ("f, document 2: items[0]", {"kind": "Pod"})],
            id="documents are counted where there are several",
        ),
        pytest.param(
            "---\n---\na: 1\n",
            [("f, document 2", {"a": 1})],
            id="null documents count",
        ),
    ],
)
def test_every_object_is_found_with_its_place(text: str, wanted: list[tuple[str, dict[str, Any]]]) -> None:
    assert parse(text, "f") == [Document(place, content) for place, content in wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("a: b: c", 'pods.yaml:1:5: Invalid value: "a: b: c"; must be YAML or JSON: ', id="broken YAML"),
        pytest.param(
            "a: 1\n  b: 2\n", 'pods.yaml:2:4: Invalid value: "b: 2"; must be YAML or JSON: ', id="indentation"
        ),
        pytest.param(
            "a:\n  b: 1\n\tc: 2\n",
            'pods.yaml:3:1: Invalid value: "c: 2"; must be YAML or JSON: a tab cannot indent; use spaces',
            id="a tab in front of a key",
        ),
        pytest.param(
            "a:\n  \t- b\n",
            'pods.yaml:2:3: Invalid value: "- b"; must be YAML or JSON: a tab cannot indent; use spaces',
            id="a tab after spaces",
        ),
        pytest.param('{\n\t"a" 1\n}', "pods.yaml:2:6: Invalid value: ", id="broken JSON that is indented by tabs"),
        pytest.param('{"a": [1,}', "pods.yaml:1:10: Invalid value: ", id="broken JSON"),
        pytest.param('{"a": tru', "pods.yaml:", id="JSON that ends too soon"),
        pytest.param(
            "a: 1\na: 2\n",
            "pods.yaml:2:1: Invalid value: \"a: 2\"; must be YAML or JSON: duplicate key 'a'",
            id="a key twice",
        ),
        pytest.param("a: 1\n---\nb: {c: 1, c: 2}\n", "pods.yaml:3:11: Invalid value: ", id="a key twice, further in"),
        pytest.param('{"a": {"b": 1, "b": 2}}', "duplicate key 'b'", id="duplicate key in JSON"),
        pytest.param(
            '{"a": 1, "b": [{"c": 1, "d": 2, "d": 3}]}', "duplicate key 'd'", id="duplicate key after another"
        ),
        pytest.param("a: *nope\n", "undefined alias", id="an alias of nothing"),
        pytest.param("a: !custom x\n", "pods.yaml:1:4: Invalid value: ", id="a tag of somebody's own"),
        pytest.param(
            "a: !!python/object:os.system x\n", "pods.yaml:1:4: Invalid value: ", id="a tag that would run code"
        ),
        pytest.param(b"a: \xff\xfe\n", 'pods.yaml: Invalid value: ""; must be YAML or JSON in UTF-8: ', id="no UTF-8"),
        pytest.param("a: \x00\n", "must be YAML or JSON in UTF-8: ", id="a control character"),
        pytest.param("just words\n", 'pods.yaml: Invalid value: "just words"; must be an object', id="text"),
        pytest.param("[1, 2]", "pods.yaml: Invalid value: [1, 2]; must be an object", id="a list"),
        pytest.param(
            "a: 1\n---\n- b\n",
            'pods.yaml, document 2: Invalid value: ["b"]; must be an object',
            id="the second document",
        ),
        pytest.param(
            "kind: List\nitems: [{}, 7]\n", "pods.yaml: items[1]: Invalid value: 7; must be an object", id="an item"
        ),
    ],
)
def test_invalid_text_is_reported_with_its_place(text: str | bytes, wanted: str) -> None:
    assert wanted in error(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\na: 2\n", id="a key twice"),
        pytest.param("a: b: c", id="broken YAML"),
        pytest.param(b"a: \xff", id="no UTF-8"),
        pytest.param("a: !custom x\n", id="a tag"),
        pytest.param("{[1]: 2}", id="a list as key"),
    ],
)
def test_loader_without_libyaml_rejects_the_same_documents(without_libyaml: ModuleType, text: str | bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^pods\.yaml(:\d+:\d+)?: Invalid value: .*must be YAML or JSON"):
        without_libyaml.parse(text, "pods.yaml")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{[1]: 2}", id="a list as key"),
        pytest.param("? {a: b}\n: c\n", id="an object as key"),
        pytest.param("spec: {nodeSelector: {1.5: a}}", id="a float as key"),
        pytest.param("{~: a}", id="null as key"),
        pytest.param("{on: a, true: b}", id="a key twice, written in two ways"),
        pytest.param("{18446744073709551615: a}", id="an integer beyond int64 as key"),
        pytest.param("a: .inf\n", id="infinity"),
        pytest.param("a: !!null x\n", id="a null that is none"),
        pytest.param("a: !!binary aGVsbG8=\n", id="bytes"),
        pytest.param("a: !!set {b, c}\n", id="a set"),
        pytest.param("a: !!timestamp 2024-01-01\n", id="a date"),
        pytest.param("a: !!timestamp x\n", id="a date that is none"),
        pytest.param("a: !!bool x\n", id="a boolean that is none"),
        pytest.param("a: !!int x\n", id="an integer that is none"),
        pytest.param("a: &x {b: *x}\n", id="an object inside itself"),
    ],
)
def test_values_that_json_does_not_have_are_rejected(text: str) -> None:
    assert error(text).startswith("pods.yaml")


def test_exponential_aliases_are_rejected() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert "aliases make it too large" in error("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &x [1, 2]\nb: *x\nc: *x\n", id="in one document"),
        pytest.param("a: &x [1, 2]\nb: *x\n---\na: &x [1, 2]\nb: *x\n", id="in all documents together"),
        pytest.param("a: &x {b: c}\nd: {<<: *x}\ne: {<<: *x}\n", id="of merge keys"),
    ],
)
def test_the_values_that_aliases_stand_for_have_a_bound(text: str) -> None:
    assert parse(text, "f.yaml", 6)
    with pytest.raises(InvalidInput) as refused:
        parse(text, "f.yaml", 5)
    detail = "aliases make it too large: they stand for more than 5 values; use fewer of them"
    assert str(refused.value).endswith(f"; {detail}")


@pytest.mark.parametrize("key", ["08", "!!int x", "!!bool x"])
def test_a_key_that_is_neither_a_number_nor_text_is_named(key: str) -> None:
    assert "a key must be text; put it in quotes" in error(f"{key}: 1\n")


def test_text_without_aliases_has_no_bound_of_values() -> None:
    assert parse("a: [1, 2, 3]\nb: {c: d}\n", "f.yaml", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("'[' * 100_000", id="lists in brackets"),
        pytest.param("'{a: ' * 50_000", id="objects in braces"),
        pytest.param("'- ' * 50_000 + 'a'", id="lists in dashes"),
        pytest.param("'a:\\n  b: 1\\nc:\\n  ' + '- ' * 50_000 + 'a'", id="lists in dashes behind other lines"),
        pytest.param("''.join(' ' * depth + 'a:\\n' for depth in range(1500))", id="objects by indentation"),
        pytest.param("'{\"a\":' * 50_000 + '1' + '}' * 50_000", id="JSON"),
    ],
)
def test_deep_nesting_is_rejected_without_a_crash(text: str) -> None:
    script = f"""
from webhook.documents.documents import parse
from webhook.documents.field import InvalidInput
try:
    parse({text}, "deep.yaml")
except InvalidInput as error:
    print(error)
"""
    root = Path(documents.__file__).parents[2]

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, timeout=60)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("deep.yaml")


@pytest.mark.parametrize("mark", ["", "---\n"], ids=["JSON", "YAML"])
def test_json_may_be_nested_as_deep_as_yaml(mark: str) -> None:
    """What is read can be written back, which orjson does to 254 levels."""
    shallow, deep = ('{"a":' * depth + "1" + "}" * depth for depth in (150, 300))

    assert len(contents(mark + shallow)) == 1
    assert error(mark + deep).startswith("pods.yaml")


def test_json_of_more_than_a_mebibyte_may_not_be_nested_deeper() -> None:
    long = f'"{"x" * 2**20}"'

    assert len(contents('{"a":' * 253 + long + "}" * 253)) == 1
    assert error('{"a":' * 254 + long + "}" * 254).endswith("nested deeper than 253 levels")


def test_yaml_is_nested_two_hundred_deep_at_most() -> None:
    assert len(contents("{a: " * 200 + "1" + "}" * 200)) == 1
    assert error("{a: " * 201 + "1" + "}" * 201).startswith("pods.yaml")


def in_braces(levels: int, innermost: str = "1") -> str:
    return "{a: " * levels + innermost + "}" * levels


def by_indentation(levels: int, innermost: str = "1") -> str:
    return "".join(" " * depth + "a:\n" for depth in range(levels)) + " " * levels + innermost


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda levels: by_indentation(levels), id="by indentation"),
        pytest.param(lambda levels: by_indentation(levels - 100, in_braces(100)), id="in braces within indentation"),
        pytest.param(lambda levels: f"a: &x {in_braces(99)}\nb: {in_braces(levels - 100, '*x')}", id="by an alias"),
        pytest.param(lambda levels: f"b: 1\na: {in_braces(levels - 2, '{}')}", id="around nothing"),
        pytest.param(lambda levels: f"b: [{'{}, ' * 200}]\na: {in_braces(levels - 1)}", id="beside many that are flat"),
        pytest.param(lambda levels: f"kind: Pod\na:\n  b: c\n---\n{by_indentation(levels)}", id="in one of several"),
    ],
)
def test_all_levels_of_a_value_count_however_it_is_written(text: Callable[[int], str]) -> None:
    assert orjson.dumps(contents(text(200)))
    assert "nested deeper than 200 levels" in error(text(201))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        pytest.param((), {"a": {"b": None, "c": [1], "d": "x"}}, id="no path"),
        pytest.param(("a", "d"), "x", id="a value"),
        pytest.param(("a", "b"), None, id="null"),
        pytest.param(("z",), None, id="missing"),
        pytest.param(("z", "y"), None, id="a parent is missing"),
        pytest.param(("a", "b", "y"), None, id="a parent is null"),
        pytest.param(("a", "c", "y"), None, id="a parent is a list"),
        pytest.param(("a", "d", "y"), None, id="a parent is text"),
    ],
)
def test_field_is_none_without_a_value(path: tuple[str, ...], wanted: object) -> None:
    assert field({"a": {"b": None, "c": [1], "d": "x"}}, *path) == wanted


@pytest.mark.parametrize("kind", ["List", "NodeList"])
def test_the_version_of_the_server_is_a_document_after_the_items(kind: str) -> None:
    text = f"kind: {kind}\nserverVersion: {{gitVersion: v1.35.0}}\nitems: [{{kind: Node}}]\n"

    assert contents(text) == [{"kind": "Node"}, {"serverVersion": {"gitVersion": "v1.35.0"}}]
    empty = text.replace("{kind: Node}", "")
    assert [each.get("kind") for each in contents(empty)] == ([None] if kind == "List" else ["NodeList", None])


@pytest.mark.parametrize(("characters", "is_rejected"), [(2**20, True), (2**20 + 1, False)])
def test_keys_given_twice_are_looked_for_in_json_of_up_to_a_mebibyte(characters: int, *, is_rejected: bool) -> None:
    text = '{"a": 1, "a": 2}'
    text += " " * (characters - len(text))

    if is_rejected:
        with pytest.raises(InvalidInput, match="duplicate key 'a'"):
            parse(text, "f.json")
    else:
        assert contents(text) == [{"a": 2}]


def test_aliases_of_more_than_two_documents_are_counted_together() -> None:
    text = "---\n".join(["a: &x [1, 2]\nb: *x\n"] * 3)

    assert len(parse(text, "f.yaml", 9)) == 3
    with pytest.raises(InvalidInput, match="they stand for more than 8 values"):
        parse(text, "f.yaml", 8)


def test_json_after_a_byte_order_mark_is_read_as_json() -> None:
    assert contents(b'\xef\xbb\xbf{"a": "\\ud83d\\ude00"}') == [{"a": "😀"}]


def test_the_same_object_beside_itself_is_not_within_itself() -> None:
    assert contents("a: &x {k: v}\nb: {c: *x, d: [*x, *x]}\n") == [
        {"a": {"k": "v"}, "b": {"c": {"k": "v"}, "d": [{"k": "v"}, {"k": "v"}]}}
    ]


def test_an_item_of_a_typed_list_keeps_the_version_that_it_states() -> None:
    text = "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{apiVersion: apps/v1beta1}]\n"

    assert contents(text) == [{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]
