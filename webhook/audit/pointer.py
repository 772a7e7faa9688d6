"""JSON pointers of a patch: the values they replace, and their field paths."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from webhook.kube.documents import JsonObject

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def values_before(pod: Mapping[str, Any], patch: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return the values of `pod` that `patch` replaces or removes, by JSON pointer.

    An added value has no previous one. Containers are left out: their environment does not belong in an audit record.
    """
    before: JsonObject = {}
    for operation in patch:
        path = parts_of(operation["path"])
        if not path or _is_container(path):
            continue
        parent = value_at(pod, path[:-1])
        if isinstance(parent, list) and operation["op"] == "add":
            continue
        value = value_at(parent, path[-1:])
        if value is not None:
            before.setdefault(operation["path"], value)
    return before


def field_path(pointer: str) -> str:
    """Return the pointer as a field path: `spec.tolerations[+]`, `metadata.labels[a.io/b]`.

    `[+]` is the position after the last item of a list.
    """
    text = ""
    for part in parts_of(pointer):
        if part == "-":
            text += "[+]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text


def parts_of(pointer: str) -> list[str]:
    """Return the keys and indices of a JSON pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _is_container(path: list[str]) -> bool:
    # In a pod template, the spec is further in.
    return any(outer == "spec" and inner in _CONTAINERS for outer, inner in pairwise(path))


def value_at(value: Any, path: Iterable[str]) -> Any:
    """Return the value in `value` at the keys and indices of `path`; None if there is none."""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
