"""Check that a JSON object has the types of a Pod in the fields that are read.

The API server sends objects that it has decoded, but other clients can send any JSON. After this check, the other
modules rely on the types.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid, required

TEXT, TEXTS = "text", "a list of texts"

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Each:
    """A list whose items all have this shape."""

    item: Any


@dataclass(frozen=True, slots=True)
class TextMap:
    """An object whose values are texts, such as labels."""


_REQUIREMENTS = Each({"key": TEXT, "operator": TEXT, "values": TEXTS})
_NODE_TERM = {"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS}
_POD_TERM = {
    "labelSelector": {"matchLabels": TextMap(), "matchExpressions": _REQUIREMENTS},
    "namespaceSelector": {"matchLabels": TextMap(), "matchExpressions": _REQUIREMENTS},
    "namespaces": TEXTS,
    "topologyKey": TEXT,
}
_POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": Each(_POD_TERM),
    "preferredDuringSchedulingIgnoredDuringExecution": Each({"podAffinityTerm": _POD_TERM}),
}
POD: Mapping[str, Any] = {
    "metadata": {
        "name": TEXT,
        "generateName": TEXT,
        "namespace": TEXT,
        "labels": TextMap(),
        "annotations": TextMap(),
        "ownerReferences": Each({"kind": TEXT, "name": TEXT}),
    },
    "spec": {
        "nodeName": TEXT,
        "schedulerName": TEXT,
        "schedulingGroup": {"podGroupName": TEXT},
        "priorityClassName": TEXT,
        "nodeSelector": TextMap(),
        "tolerations": Each({"key": TEXT, "operator": TEXT, "value": TEXT, "effect": TEXT}),
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": Each(_NODE_TERM)},
                "preferredDuringSchedulingIgnoredDuringExecution": Each({"preference": _NODE_TERM}),
            },
            "podAffinity": _POD_AFFINITY,
            "podAntiAffinity": _POD_AFFINITY,
        },
        "topologySpreadConstraints": Each({"topologyKey": TEXT}),
    },
}


def check_pod(pod: Mapping[str, Any], where: str = "") -> None:
    """Return if the fields of `pod` have the types of a Pod.

    Raises:
        InvalidInput: a field has another type, or metadata or spec are missing; holds the first MOST_ERRORS fields.
    """
    if _fits_pod(pod) and pod.get("metadata") is not None and pod.get("spec") is not None:
        return
    errors = list(islice(_errors(pod, POD, where), MOST_ERRORS))
    errors += [required(_join(where, part), "a Pod has one") for part in ("metadata", "spec") if pod.get(part) is None]
    if errors:
        raise InvalidInput(errors)


def _errors(value: Any, shape: Any, path: str) -> Iterator[FieldError]:
    if value is None:
        return
    if isinstance(shape, Mapping):
        yield from _object_errors(value, shape, path)
    elif isinstance(shape, Each):
        yield from _list_errors(value, shape, path)
    elif isinstance(shape, TextMap):
        yield from _text_map_errors(value, path)
    elif shape == TEXTS:
        if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
            yield invalid(path, value, "must be a list of texts")
    elif not isinstance(value, str):
        yield invalid(path, value, "must be text")


def _object_errors(value: Any, shape: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield invalid(path, value, "must be an object")
        return
    for key, inner in shape.items():
        if key in value:
            yield from _errors(value[key], inner, _join(path, key))


def _text_map_errors(value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield invalid(path, value, "must be an object")
        return
    for key, text in value.items():
        if not isinstance(text, str):
            yield invalid(f"{path}[{key}]", text, "must be text; put it in quotes")


def _list_errors(value: Any, shape: Each, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield invalid(path, value, "must be a list")
        return
    # A list can have a million items, and few have an error.
    fits = _check(shape.item)
    for index, item in enumerate(value):
        if item is None:
            yield invalid(f"{path}[{index}]", item, "must not be null")
        elif not fits(item):
            yield from _errors(item, shape.item, f"{path}[{index}]")


def _check(shape: Any) -> Check:
    """Return a function that is true for values in which `_errors` finds nothing. It is compiled once for all pods."""
    if isinstance(shape, Mapping):
        return _object_check({key: _check(inner) for key, inner in shape.items()})
    if isinstance(shape, Each):
        return _list_check(_check(shape.item))
    if isinstance(shape, TextMap):
        return _is_text_map
    return _is_texts if shape == TEXTS else _is_text


def _object_check(checks: Mapping[str, Check]) -> Check:
    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        for key in checks.keys() & value.keys():
            inner = value[key]
            if inner is not None and not checks[key](inner):
                return False
        return True

    return fits


def _list_check(check: Check) -> Check:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(item is not None and check(item) for item in value)

    return fits


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and _TEXT.issuperset(map(type, value.values()))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and _TEXT.issuperset(map(type, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_TEXT = frozenset((str,))
_fits_pod = _check(POD)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
