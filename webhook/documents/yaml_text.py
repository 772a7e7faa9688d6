"""Read YAML as kubectl does: the line numbers of fields, and plain scalars.

Plain scalars are booleans and numbers of YAML 1.1, without dates and base 60.

Source: go.yaml.in/yaml/v2 2.4.4, resolve.go, as called by sigs.k8s.io/yaml 1.6.0 of kubectl 1.37.
"""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def objects(text: str | bytes) -> list[yaml.Node]:
    """Return each object in `text`, in the order of `documents.parse`, or none if it cannot be parsed."""
    try:
        return [each for node in yaml.compose_all(text, _Loader) for each in _objects(node)]
    except yaml.YAMLError:
        return []


def lines_in(node: yaml.Node, paths: Iterable[str]) -> dict[str, int]:
    """Return the line numbers of the fields of an object at `paths` and of the fields that contain them.

    Fields are named as in errors: `spec.accelerators[0].card`. The line is that of the field's key, or of its item in a
    list.
    """
    wanted = {outer for path in paths for outer in _outward(path)}
    waiting, seen, lines = deque([("", node)]), set[tuple[str, int]](), dict[str, int]()
    while waiting:
        path, node = waiting.popleft()
        if (path, id(node)) in seen:
            continue
        seen.add((path, id(node)))
        for inner, place, value in _fields(path, node):
            if inner not in wanted:
                continue
            lines[inner] = place.start_mark.line + 1
            # The fields of an alias, which begins before its key, are in another place: they have the alias's line.
            if value.start_mark.index >= place.start_mark.index:
                waiting.append((inner, value))
    return lines


def line_of(path: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of the field at `path` or, if it is absent, of the innermost field that contains it."""
    return next((lines[outer] for outer in _outward(path) if outer in lines), None)


def _outward(path: str) -> Iterator[str]:
    """Yield the path, then the paths of the fields that contain it, the innermost first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return
    fields = {key.value: value for key, value in node.value}
    kind, items = fields.get("kind"), fields.get("items")
    is_list = isinstance(kind, yaml.ScalarNode) and str(kind.value).endswith("List")
    if is_list and isinstance(items, yaml.SequenceNode):
        for each in items.value:
            yield from _objects(each)
    else:
        yield node


def _fields(path: str, node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Yield for each field or item of the node at `path`: its path, the node that has its line, and its value."""
    if isinstance(node, yaml.MappingNode):
        yield from ((f"{path}.{key.value}" if path else str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((f"{path}[{index}]", item, item) for index, item in enumerate(node.value))


TAG = "tag:yaml.org,2002:"

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_BOOLEANS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
_NULLS = ("", "~", "null", "Null", "NULL")
_NOT_FINITE = (
    *(f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")),
    *(".nan", ".NaN", ".NAN"),
)
_WORDS = {
    **dict.fromkeys(_BOOLEANS, f"{TAG}bool"),
    **dict.fromkeys(_NULLS, f"{TAG}null"),
    **dict.fromkeys(_NOT_FINITE, f"{TAG}float"),
    "<<": f"{TAG}merge",
}
_NUMBERS_BEGIN_WITH = frozenset("+-.0123456789")
_BASES = (16, 2, 8, 10)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def plain_tag(text: str) -> str:
    """Return the tag of a scalar without quotes."""
    if tag := _WORDS.get(text):
        return tag
    if text[0] in _NUMBERS_BEGIN_WITH:
        if _integer(text) is not None:
            return f"{TAG}int"
        if _finite(text) is not None:
            return f"{TAG}float"
    return f"{TAG}str"


def read_boolean(text: str) -> bool:
    """Return the boolean in `text`.

    Raises:
        ValueError: `text` is not a boolean.
    """
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def read_null(text: str) -> None:
    """Return None for a null.

    Raises:
        ValueError: `text` is not a null.
    """
    if text not in _NULLS:
        raise ValueError(text)


def read_integer(text: str) -> int:
    """Return the integer in `text`.

    Raises:
        ValueError: `text` is not an integer, or needs more than 64 bits.
    """
    value = _integer(text)
    if value is None:
        raise ValueError(text)
    return value


def read_float(text: str) -> float:
    """Return the number in `text`. It is an int if kubectl sends it without a fraction.

    Raises:
        ValueError: `text` is not a number.
    """
    if text in _NOT_FINITE:
        return math.inf
    value = _finite(text) if (integer := _integer(text)) is None else float(integer)
    if value is None:
        raise ValueError(text)
    return int(value) if value.is_integer() and -(2**63) <= value < 2**63 else value


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(_without_underscores(text))
    if match is None:
        return None
    sign, *digits = match.groups()
    value = next(int(each, base) for each, base in zip(digits, _BASES, strict=True) if each is not None)
    if sign == "-":
        value = -value
    # Only an integer without a sign can be a uint64.
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def _finite(text: str) -> float | None:
    plain = text if text.startswith(".") else _without_underscores(text)
    value = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return value if math.isfinite(value) else None


def _without_underscores(text: str) -> str:
    # A scalar that starts with an underscore is a string.
    return text if text.startswith((".", "_")) else text.replace("_", "")
