"""Check that a JSON object has the types of a Pod in the fields that are read.

The API server sends objects that it has decoded, but other clients can send any JSON. After this check, the other
modules rely on the types.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from msgspec import ValidationError, convert, defstruct

from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid, required

TEXT, TEXTS = "text", "a list of texts"


@dataclass(frozen=True)
class Each:
    """A list whose items all have this shape."""

    item: Any

    @cached_property
    def item_type(self) -> Any:
        """Return the type of items in which `_errors` finds nothing."""
        return _type(self.item)


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
    if _fits(pod, _POD_TYPE) and pod.get("metadata") is not None and pod.get("spec") is not None:
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
    for index, item in enumerate(value):
        if item is None:
            yield invalid(f"{path}[{index}]", item, "must not be null")
        elif not _fits(item, shape.item_type):
            yield from _errors(item, shape.item, f"{path}[{index}]")


def _type(shape: Any) -> Any:
    """Return the type of values in which `_errors` finds nothing."""
    if isinstance(shape, Mapping):
        return defstruct("Object", [(key, _type(inner) | None, None) for key, inner in shape.items()])
    if isinstance(shape, Each):
        return list[shape.item_type]
    if isinstance(shape, TextMap):
        return dict[str, str]
    return list[str] if shape == TEXTS else str


_POD_TYPE = _type(POD)


def _fits(value: Any, kind: Any) -> bool:
    try:
        convert(value, kind)
    except ValidationError:
        return False
    return True


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
