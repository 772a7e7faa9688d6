"""YAML and JSON text into Kubernetes documents, each with the place it came from."""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from webhook.kube.field import InvalidInput, invalid

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file. `place` names it in errors: `pods.yaml, document 2`."""

    place: str
    content: JsonObject


def parse(text: str | bytes, place: str) -> list[Document]:
    """Every object in `text`: JSON, YAML, several YAML documents, and the items of `v1 List`s, in their order.

    `place` is what errors call the text: its file name, or `<stdin>`.

    Raises:
        InvalidInput: the text is neither JSON nor YAML, a key stands twice, or a document is not an object.
    """
    documents = list(_load(text, place))
    found: list[Document] = []
    for number, content in enumerate(documents, start=1):
        if content is None:
            continue
        where = place if len(documents) == 1 else f"{place}, document {number}"
        if not isinstance(content, dict):
            raise InvalidInput([invalid(where, content, "must be an object with apiVersion and kind")])
        found.extend(_items(content, where))
    return found


def _items(content: JsonObject, where: str) -> Iterator[Document]:
    kind, items = content.get("kind"), content.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield Document(where, content)
        return
    item_kind = kind.removesuffix("List")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise InvalidInput([invalid(f"{where}: items[{index}]", item, "must be an object")])
        if item_kind and "kind" not in item:
            # The API server leaves apiVersion and kind out of the items of a typed list (PodList, NodeList).
            item = {"apiVersion": content.get("apiVersion", "v1"), "kind": item_kind, **item}
        yield from _items(item, f"{where}: items[{index}]")


def _load(text: str | bytes, place: str) -> Iterator[Any]:
    stripped = text.lstrip()
    if stripped[:1] in ("{", b"{", "[", b"["):
        try:
            yield orjson.loads(stripped)
        except orjson.JSONDecodeError:
            pass  # a flow mapping is YAML too, and YAML's error names line and column
        else:
            return
    try:
        yield from yaml.load_all(text, Loader=_KubernetesLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{place}:{mark.line + 1}:{mark.column + 1}" if mark else place
        problem = error.problem or "cannot be read"
        raise InvalidInput([invalid(where, _line(text, mark), f"must be YAML or JSON: {problem}")]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        detail = str(error).split("\n", 1)[0]
        raise InvalidInput([invalid(place, "", f"must be YAML or JSON in UTF-8: {detail}")]) from error


def _line(text: str | bytes, mark: yaml.Mark | None) -> str:
    if mark is None:
        return ""
    lines = (text if isinstance(text, str) else text.decode("utf-8", "replace")).splitlines()
    return lines[mark.line].strip() if mark.line < len(lines) else ""


# YAML 1.2's core schema: 1.1 makes `off`, `no`, `2024-01-01` and `1:30` a boolean, a date and the number 90.
_CORE_SCHEMA = (
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
        list("-+.0123456789"),
    ),
    ("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"]),
)

if TYPE_CHECKING:
    from yaml import SafeLoader as _Base
else:
    # libyaml's loader, ten times as fast, where PyYAML was built with it.
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _KubernetesLoader(_Base):
    """Reads what JSON can hold and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of `node`, refused where a key stands twice."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_KubernetesLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _CORE_SCHEMA:
    _KubernetesLoader.add_implicit_resolver(_tag, _pattern, _first)


def field(content: Mapping[str, Any], *path: str) -> Any:
    """The value at `path`, or None where it or a parent of it is missing, null or not an object."""
    value: Any = content
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
