"""Applies the RFC 6902 operations that this webhook writes: `add` and `replace`."""

from collections.abc import Iterable, Mapping
from typing import Any

JsonObject = dict[str, Any]


def patched(document: Mapping[str, Any], operations: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return `document` with `operations` applied; `document` itself stays as it is."""
    result: JsonObject = dict(document)
    for operation in operations:
        *parents, last = [_unescaped(step) for step in operation["path"].split("/")[1:]]
        here: Any = result
        for step in parents:
            place = int(step) if isinstance(here, list) else step
            # Copied, since the original and the operations share it.
            here[place] = here[place].copy()
            here = here[place]
        if not isinstance(here, list):
            here[last] = operation["value"]
        elif last == "-":
            here.append(operation["value"])
        elif operation["op"] == "add":
            here.insert(int(last), operation["value"])
        else:
            here[int(last)] = operation["value"]
    return result


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
