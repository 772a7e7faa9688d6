"""Parse YAML and JSON text into Kubernetes documents, each with its place in the source."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import yaml

from webhook.documents.field import InvalidInput, invalid
from webhook.documents.json_text import JsonList, NotAListError, read_json
from webhook.documents.yaml_loader import MOST_ALIASED, TooManyAliases, load_yaml

JsonObject = dict[str, Any]

SERVER_VERSION = "serverVersion"
"""The key in the output of `kubectl version -o json` for the API server. A list can have it next to its items."""

# Almost every object is a dict, which isinstance() finds in a fifth of the time that the abstract class takes.
OBJECT = (dict, Mapping)


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file. Errors show its `place`: `pods.yaml, document 2`."""

    place: str
    content: JsonObject


def parse(text: str | bytes, place: str, most_aliased: int = MOST_ALIASED) -> list[Document]:
    """Return every object in `text`: JSON, YAML, several YAML documents, and the items of lists, in order.

    An empty list of one kind, such as a NodeList, is returned as an object, because it shows that there are no objects
    of this kind. `place` is the name of the text in errors: its file name, or `<stdin>`. `most_aliased` is the maximum
    number of values after the aliases in `text` are expanded.

    Raises:
        InvalidInput: the text is neither JSON nor YAML, a key is duplicated, a document is not an object, or aliases
            stand for too many values.
    """
    documents = list(_load(text, place, most_aliased))
    found: list[Document] = []
    for number, content in enumerate(documents, start=1):
        if content is None:
            continue
        where = place if len(documents) == 1 else f"{place}, document {number}"
        if not isinstance(content, dict):
            raise InvalidInput([invalid(where, content, "must be an object with apiVersion and kind")])
        found.extend(_items(content, where))
    return found


def parse_list(file: BinaryIO, place: str) -> Iterator[Document]:
    """Yield the documents of a large JSON list as `parse` returns them, without loading the whole list into memory.

    Raises:
        InvalidInput: an item is not an object.
        NotAListError: the file is not a large JSON list, and must be parsed as a whole. Ignore the documents yielded
            before.
    """
    listed = JsonList(file)
    kind = listed.content.get("kind")
    if not (isinstance(kind, str) and kind.endswith("List")):
        raise NotAListError
    yield from _each(listed.items(), listed.content, place)


def _items(content: JsonObject, where: str) -> Iterator[Document]:
    kind, items = content.get("kind"), content.get("items", "")
    if items is None:  # Go can write an empty list as null
        items = []
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield Document(where, content)
        return
    if kind != "List" and not items:
        yield Document(where, content)
    yield from _each(items, content, where)


def _each(items: Iterable[Any], listed: JsonObject, where: str) -> Iterator[Document]:
    item_kind = listed["kind"].removesuffix("List")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise InvalidInput([invalid(f"{where}: items[{index}]", item, "must be an object")])
        if item_kind and "kind" not in item:
            # The API server leaves apiVersion and kind out of the items of a typed list (PodList, NodeList).
            item = {"apiVersion": listed.get("apiVersion", "v1"), "kind": item_kind, **item}
        yield from _items(item, f"{where}: items[{index}]")
    if SERVER_VERSION in listed:
        yield Document(where, {SERVER_VERSION: listed[SERVER_VERSION]})


def _load(text: str | bytes, place: str, most_aliased: int) -> Iterator[Any]:
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput([invalid(place, "", f"must be YAML or JSON in UTF-8: {error.reason}")]) from error
    try:
        yield from _values(decoded, most_aliased)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{place}:{mark.line + 1}:{mark.column + 1}" if mark else place
        lines = decoded.splitlines() if mark else []
        line = lines[mark.line] if mark and mark.line < len(lines) else ""
        # YAML allows no tab in front of a key.
        is_tab = mark is not None and line[mark.column : mark.column + 1] == "\t"
        problem = "a tab cannot indent; use spaces" if is_tab else error.problem or "cannot be read"
        detail = problem if isinstance(error, TooManyAliases) else f"must be YAML or JSON: {problem}"
        raise InvalidInput([invalid(where, line.strip(), detail)]) from error
    except (yaml.YAMLError, ValueError) as error:
        detail = str(error).split("\n", 1)[0]
        raise InvalidInput([invalid(place, "", f"must be YAML or JSON in UTF-8: {detail}")]) from error


def _values(text: str, most_aliased: int) -> Iterable[Any]:
    found = read_json(text) if text.lstrip()[:1] in ("{", "[") else None
    # Text that is no JSON is parsed as YAML, whose errors have line and column.
    return load_yaml(text, most_aliased) if found is None else found


def field(content: Mapping[str, Any], *path: str) -> Any:
    """Return the value at `path`, or None if it is missing or null, or if a parent of it is not an object."""
    value: Any = content
    for key in path:
        if not isinstance(value, OBJECT):
            return None
        value = value.get(key)
    return value
