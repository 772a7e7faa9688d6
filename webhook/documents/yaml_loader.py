"""Load YAML documents as kubectl does, within limits of nesting and of aliases.

Source: go.yaml.in/yaml/v2 2.4.4 and sigs.k8s.io/yaml 1.6.0 of kubectl 1.37.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import yaml

from webhook.documents.yaml_text import TAG, plain_tag, read_boolean, read_float, read_integer, read_null

MOST_ALIASED = 50_000_000
"""About the number of values in a cluster of 15,000 nodes and 150,000 pods."""

# The most levels of a value in YAML.
_DEEPEST = 200
_NESTING = re.compile(r"^[ ?:-]+", re.MULTILINE)
_BRACKET = re.compile(r"[\[{]")


def load_yaml(text: str, most_aliased: int) -> Iterator[Any]:
    """Yield the value of each YAML document in `text`.

    Raises:
        yaml.YAMLError: the text is not YAML, holds what JSON or kubectl cannot, or is nested too deeply.
        TooManyAliases: the aliases stand for more than `most_aliased` values.
    """
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


class TooManyAliases(yaml.MarkedYAMLError):
    """The aliases expand to too many values."""


class _KubernetesLoader(_Base):
    """Loads values that JSON can hold, as kubectl does. Rejects duplicate keys and tags that kubectl ignores."""

    most_aliased = MOST_ALIASED
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
            raise TooManyAliases(problem=problem, problem_mark=cast("yaml.Mark", node.start_mark))
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
