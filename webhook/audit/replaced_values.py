"""The values that a patch replaces, for the audit record, and lookup by JSON pointer."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from webhook.documents.documents import JsonObject
from webhook.kube.api.json_patch import steps_of

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def values_before(pod: Mapping[str, Any], patch: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return the values of `pod` that `patch` replaces or removes, by JSON pointer.

    Added values are left out, because they replace nothing. Containers are left out, because their environment does not
    belong in an audit record.
    """
    before: JsonObject = {}
    for operation in patch:
        path = steps_of(operation["path"])
        # In a pod template, the spec is further in.
        if not path or any(outer == "spec" and inner in _CONTAINERS for outer, inner in pairwise(path)):
            continue
        parent = value_at(pod, path[:-1])
        if isinstance(parent, list) and operation["op"] == "add":
            continue
        value = value_at(parent, path[-1:])
        if value is not None:
            before.setdefault(operation["path"], value)
    return before


def value_at(value: Any, path: Iterable[str]) -> Any:
    """Return the value in `value` at the keys and indices of `path`, or None if there is none."""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
