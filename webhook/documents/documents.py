"""Parse YAML and JSON text into Kubernetes documents, each with its place in the source."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import yaml

from webhook.documents.field import InvalidInput, invalid
from webhook.documents.json_text import JsonList, NotAListError, read_json
from webhook.documents.yaml_text import TAG, plain_tag, read_boolean, read_float, read_integer, read_null

JsonObject = dict[str, Any]

# About the number of values in a cluster of 15,000 nodes and 150,000 pods.
_MOST_ALIASED = 50_000_000

SERVER_VERSION = "serverVersion"
"""The key in the output of `kubectl version -o json` for the API server. A list can have it next to its items."""

# Almost every object is a dict, which isinstance() finds in a fifth of the time that the abstract class takes.
_OBJECT = (dict, Mapping)


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file. Errors show its `place`: `pods.yaml, document 2`."""

    place: str
    content: JsonObject


def parse(text: str | bytes, place: str, most_aliased: int = _MOST_ALIASED) -> list[Document]:
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
        detail = problem if isinstance(error, _TooManyAliases) else f"must be YAML or JSON: {problem}"
        raise InvalidInput([invalid(where, line.strip(), detail)]) from error
    except (yaml.YAMLError, ValueError) as error:
        detail = str(error).split("\n", 1)[0]
        raise InvalidInput([invalid(place, "", f"must be YAML or JSON in UTF-8: {detail}")]) from error


def _values(text: str, most_aliased: int) -> Iterable[Any]:
    found = read_json(text) if text.lstrip()[:1] in ("{", "[") else None
    # Text that is no JSON is parsed as YAML, whose errors have line and column.
    return _load_yaml(text, most_aliased) if found is None else found


def _load_yaml(text: str, most_aliased: int) -> Iterator[Any]:
    if max(map(len, _NESTING.findall(text)), default=0) > _DEEPEST or len(_BRACKET.findall(text)) > _DEEPEST:
        _reject_deep_nesting(text)
    loader = _KubernetesLoader(text)
    loader.most_aliased = most_aliased
    try:
        while loader.check_data():  # type: ignore[no-untyped-call] # PyYAML's stubs leave it out
            yield loader.get_data()
    finally:
        loader.dispose()


def _reject_deep_nesting(text: str) -> None:
    """Raise an error for a value that is nested too deeply, because libyaml's loader recurses without a limit."""
    depth = 0
    for event in yaml.parse(text, Loader=_KubernetesLoader):
        if isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise _nested_too_deeply(event.start_mark)


# The most levels of a value in YAML.
_DEEPEST = 200
_NESTING = re.compile(r"^[ ?:-]+", re.MULTILINE)
_BRACKET = re.compile(r"[\[{]")

_JSON_TAGS = {f"{TAG}{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}
_READERS: Mapping[str, Callable[[str], Any]] = {
    f"{TAG}null": read_null,
    f"{TAG}bool": read_boolean,
    f"{TAG}int": read_integer,
    f"{TAG}float": read_float,
}

if TYPE_CHECKING:
    from yaml import SafeLoader as _Base
else:
    # libyaml's loader, if PyYAML is built with it, is ten times as fast.
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TooManyAliases(yaml.MarkedYAMLError):
    """The aliases expand to too many values."""


class _KubernetesLoader(_Base):
    """Loads values that JSON can hold, as kubectl does. Rejects duplicate keys and tags that kubectl ignores."""

    most_aliased = _MOST_ALIASED
    """The number of values that the aliases of all documents can stand for, together."""
    _aliased = 0

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        """Return the tag of a node without an explicit tag."""
        if kind is yaml.ScalarNode and value is not None and isinstance(implicit, tuple) and implicit[0]:
            return plain_tag(value)
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call] # PyYAML's stubs leave it out

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace `<<` by the entries that it refers to.

        Of two equal keys, the last one wins, whether it is merged or not.
        """
        if not any(key.tag == f"{TAG}merge" for key, _ in node.value):
            return
        pieces = []
        for pair in node.value:
            piece = yaml.MappingNode(node.tag, [pair], node.start_mark, node.end_mark)
            super().flatten_mapping(piece)
            pieces += piece.value
        node.value = pieces

    def construct_document(self, node: yaml.Node) -> Any:
        known: dict[int, tuple[int, int]] = {}
        values, _ = self._check(node, set(), known)
        self._aliased += values - len(known)
        return super().construct_document(node)

    def _check(self, node: yaml.Node, above: set[int], known: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """Return the numbers of values and of levels in `node` with its aliases expanded. `known` caches them by id."""
        if id(node) in above:
            raise _unfit(node, "an object inside itself")
        if id(node) not in known:
            if len(above) > _DEEPEST:
                raise _nested_too_deeply(node.start_mark)
            known[id(node)] = self._check_inner(node, above, known)
        values, levels = known[id(node)]
        # An alias can bring levels into a place that is nested itself.
        if len(above) + levels > _DEEPEST:
            raise _nested_too_deeply(node.start_mark)
        # The text has each known node once, so aliases stand for the other values.
        if self._aliased + values - len(known) > self.most_aliased:
            stand_for = f"they stand for more than {self.most_aliased} values; use fewer of them"
            problem = f"aliases make it too large: {stand_for}"
            raise _TooManyAliases(problem=problem, problem_mark=cast("yaml.Mark", node.start_mark))
        return values, levels

    def _check_inner(self, node: yaml.Node, above: set[int], known: dict[int, tuple[int, int]]) -> tuple[int, int]:
        if node.tag not in _JSON_TAGS:
            raise _unfit(node, f"JSON has no value for tag {node.tag}")
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node)
            return 1, 0
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        above.add(id(node))
        children = [each for child in node.value for each in (child if isinstance(child, tuple) else (child,))]
        inner = [self._check(child, above, known) for child in children]
        above.discard(id(node))
        return 1 + sum(values for values, _ in inner), 1 + max((levels for _, levels in inner), default=0)

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        if node.tag not in _READERS:
            return
        try:
            value = _READERS[node.tag](node.value)
        except ValueError as error:
            raise _unfit(node, f"{node.value!r} is not a valid {node.tag.removeprefix(TAG)}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise _unfit(node, "the number is out of range for a float")


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for index, (key, value) in enumerate(node.value):
        if key.tag == f"{TAG}merge":
            continue
        if key.tag in (f"{TAG}bool", f"{TAG}int"):
            key = _text_key(key)
            node.value[index] = (key, value)
        if key.tag != f"{TAG}str":
            raise _unfit(key, "a key must be text; put it in quotes")
        if key.value in seen:
            raise _unfit(key, f"duplicate key {key.value!r}")
        seen.add(key.value)


def _text_key(key: yaml.ScalarNode) -> yaml.ScalarNode:
    """Return a boolean or integer key as kubectl converts it: `on` becomes `true`.

    kubectl also converts a float, but shortens it to seven digits; here a float is an error.
    """
    try:
        value = _READERS[key.tag](key.value)
    except ValueError:
        return key
    return key if value >= 2**63 else yaml.ScalarNode(f"{TAG}str", str(value).lower(), key.start_mark, key.end_mark)


def _nested_too_deeply(mark: object) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"nested deeper than {_DEEPEST} levels", problem_mark=cast("yaml.Mark", mark))


def _unfit(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _constructor(read: Callable[[str], Any]) -> Callable[[_KubernetesLoader, yaml.ScalarNode], Any]:
    return lambda _, node: read(node.value)


for _tag, _read in _READERS.items():
    _KubernetesLoader.add_constructor(_tag, _constructor(_read))
_KubernetesLoader.add_constructor(f"{TAG}merge", _constructor(str))


def field(content: Mapping[str, Any], *path: str) -> Any:
    """Return the value at `path`, or None if it is missing or null, or if a parent of it is not an object."""
    value: Any = content
    for key in path:
        if not isinstance(value, _OBJECT):
            return None
        value = value.get(key)
    return value
