"""Check that the fields of a JSON object that are read have the types of a Pod.

The API server sends validated objects, but other clients can send any JSON. After this check, other modules rely on the
types.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from msgspec import ValidationError, convert, defstruct

from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid, required


@dataclass(frozen=True)
class Each:
    """A list whose items all have this shape: a type, an object given by its fields, or a nested list."""

    item: Any

    @cached_property
    def item_type(self) -> Any:
        """Return the type of a list item for which `_errors` finds no errors."""
        return _type(self.item)


_REQUIREMENTS = Each({"key": str, "operator": str, "values": list[str]})
_NODE_TERM = {"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS}
_POD_TERM = {
    "labelSelector": {"matchLabels": dict[str, str], "matchExpressions": _REQUIREMENTS},
    "namespaceSelector": {"matchLabels": dict[str, str], "matchExpressions": _REQUIREMENTS},
    "namespaces": list[str],
    "topologyKey": str,
}
_POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": Each(_POD_TERM),
    "preferredDuringSchedulingIgnoredDuringExecution": Each({"podAffinityTerm": _POD_TERM}),
}
POD: Mapping[str, Any] = {
    "metadata": {
        "name": str,
        "generateName": str,
        "namespace": str,
        "labels": dict[str, str],
        "annotations": dict[str, str],
        "ownerReferences": Each({"kind": str, "name": str}),
    },
    "spec": {
        "nodeName": str,
        "schedulerName": str,
        "schedulingGroup": {"podGroupName": str},
        "priorityClassName": str,
        "runtimeClassName": str,
        "nodeSelector": dict[str, str],
        "tolerations": Each({"key": str, "operator": str, "value": str, "effect": str}),
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": Each(_NODE_TERM)},
                "preferredDuringSchedulingIgnoredDuringExecution": Each({"preference": _NODE_TERM}),
            },
            "podAffinity": _POD_AFFINITY,
            "podAntiAffinity": _POD_AFFINITY,
        },
        "topologySpreadConstraints": Each({"topologyKey": str}),
    },
}


def check_pod(pod: Mapping[str, Any]) -> None:
    """Check that the fields of `pod` have the types of a Pod.

    Raises:
        InvalidInput: a field has a wrong type, or metadata or spec are missing; contains the first MOST_ERRORS errors.
    """
    if _fits(pod, _POD_TYPE) and pod.get("metadata") is not None and pod.get("spec") is not None:
        return
    errors = list(islice(_errors(pod, POD, ""), MOST_ERRORS))
    errors += [required(part, "a Pod has one") for part in ("metadata", "spec") if pod.get(part) is None]
    if errors:
        raise InvalidInput(errors)


def _errors(value: Any, shape: Any, path: str) -> Iterator[FieldError]:
    if value is None:
        return
    if isinstance(shape, Mapping):
        yield from _object_errors(value, shape, path)
    elif isinstance(shape, Each):
        yield from _list_errors(value, shape, path)
    elif shape == dict[str, str]:
        yield from _text_map_errors(value, path)
    elif shape == list[str]:
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
            yield from _errors(value[key], inner, f"{path}.{key}" if path else key)


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
    if isinstance(shape, Mapping):
        return defstruct("Object", [(key, _type(inner) | None, None) for key, inner in shape.items()])
    return list[shape.item_type] if isinstance(shape, Each) else shape


_POD_TYPE = _type(POD)


def _fits(value: Any, kind: Any) -> bool:
    try:
        convert(value, kind)
    except ValidationError:
        return False
    return True
