"""Write CEL expressions: literals, choices, patterns, and operations of JSON patches.

An expression is a string, in parentheses if it has operators. The operations of a list are evaluated on the pod as it
was before all of them.

The expressions compile in the CEL environment of Kubernetes 1.33 and newer, because an API server compiles new
expressions in the environment of the previous release.

Source: k8s.io/apiserver/pkg/cel/environment/base.go
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from webhook.mutation.edits.editor import Path, pointer

Cel = str

# The characters that Python's str.strip removes: more than CEL's trim.
_BLANK = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_STRIPPED = rf"[^{_BLANK}](?s:.*[^{_BLANK}])?"
_LABEL_VALUE = "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"


def text(value: str) -> Cel:
    """Return the literal of a string."""
    return json.dumps(value, ensure_ascii=False)


def texts(values: Iterable[str]) -> Cel:
    """Return the literal of a list of strings."""
    return f"[{', '.join(map(text, values))}]"


def dyn_map(fields: Mapping[str, Cel]) -> Cel:
    """Return a map whose values may have different types, which a JSON patch can have as a value.

    A list that is a value must not contain typed objects, because they make the API server panic (kube-apiserver
    1.36.2).
    """
    return "{" + ", ".join(f"{text(key)}: dyn({value})" for key, value in fields.items()) + "}"


def any_of(conditions: Iterable[Cel]) -> Cel:
    """Return whether one of `conditions` is true, or false if there are none."""
    return _joined(conditions, " || ", "false")


def all_of(conditions: Iterable[Cel]) -> Cel:
    """Return whether all `conditions` are true, or true if there are none."""
    return _joined(conditions, " && ", "true")


def _joined(conditions: Iterable[Cel], operator: str, empty: Cel) -> Cel:
    neutral, found = empty, list(conditions)
    absorbing = "true" if neutral == "false" else "false"
    if absorbing in found:
        return absorbing
    found = list(dict.fromkeys(each for each in found if each != neutral))
    if len(found) < 2:
        return found[0] if found else neutral
    return f"({operator.join(found)})"


def negated(condition: Cel) -> Cel:
    """Return whether `condition` is false."""
    return {"true": "false", "false": "true"}.get(condition, f"!({condition})")


def choose(choices: Iterable[tuple[Cel, Cel]], otherwise: Cel) -> Cel:
    """Return the value of the first pair whose condition is true, or else `otherwise`."""
    pairs = list(choices)
    result = otherwise
    for condition, value in reversed(pairs):
        if condition == "true":
            result = value
        elif condition != "false" and value != result:
            result = f"({condition} ? {value} : {result})"
    return result


def concatenated(lists: Iterable[Cel]) -> Cel:
    """Return the concatenation of lists."""
    found = [each for each in lists if each != "[]"]
    if len(found) < 2:
        return found[0] if found else "[]"
    return f"({' + '.join(found)})"


def when(condition: Cel, items: Cel) -> Cel:
    """Return the list `items` if `condition` is true, or else an empty list."""
    return choose([(condition, items)], "[]")


def matches_any(value: Cel, patterns: Sequence[str]) -> Cel:
    """Return whether one of `patterns` with `*` matches the string `value`."""
    if "*" in patterns:
        return "true"
    if not patterns:
        return "false"
    if not any("*" in each for each in patterns):
        return f"{value} in {texts(patterns)}"
    parts = (".*".join(map(re.escape, each.split("*"))) for each in patterns)
    regex = f"^(?s:{'|'.join(parts)})$"
    return f"{value}.matches({text(regex)})"


def stripped(value: Cel) -> Cel:
    """Return the string `value` without blanks at its ends."""
    return f"{value}.find({text(_STRIPPED)})"


def is_label_value(value: Cel) -> Cel:
    """Return whether the string `value` is a non-empty label value."""
    return f"{value}.matches({text(_LABEL_VALUE)})"


def added(path: Cel, value: Cel) -> Cel:
    """Return the operation of a JSON patch that adds a value; `path` is an expression."""
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'


def value_at(path: Path) -> Cel:
    """Return the CEL optional with the value at `path` of the pod."""
    return "object" + "".join(f".?{step}" if str(step).isidentifier() else f"[?{text(str(step))}]" for step in path)


def add(path: Path, value: Cel) -> Cel:
    """Return the operation that sets the value at `path`, as a list."""
    return f"[{added(text(pointer(path)), value)}]"


def add_missing(path: Path, value: Cel) -> Cel:
    """Return the operation that sets the value at `path` if there is none."""
    return when(f"!{value_at(path)}.hasValue()", add(path, value))


def parents(path: Path, depth: int = 1) -> Cel:
    """Return the operations that add the missing parents of `path` below the first `depth` steps, which exist."""
    return concatenated(add_missing(path[:end], "dyn({})") for end in range(depth + 1, len(path)))


def append(items: Cel, path: Path, depth: int = 1) -> Cel:
    """Return the operations that append `items` to the list at `path`, whose first `depth` steps exist."""
    appended = f"{items}.map(item, {added(text(pointer(path) + '/-'), 'item')})"
    return concatenated((parents(path, depth), add_missing(path, "dyn([])"), appended))
