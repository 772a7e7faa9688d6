"""Apply the RFC 6902 operations that this webhook writes: `add` and `replace`, and `remove` of a key."""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.documents.documents import JsonObject


def patched(document: Mapping[str, Any], operations: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return `document` with `operations` applied; `document` itself does not change."""
    result: JsonObject = dict(document)
    # The copied values by id; other values are shared with the document and the operations. Storing a copy keeps its
    # id from being reused.
    own: dict[int, Any] = {}
    before: list[str] = []
    here: Any = result
    for operation in operations:
        *parents, last = steps_of(operation["path"])
        if parents != before:
            before, here = parents, result
            for step in parents:
                place = int(step) if isinstance(here, list) else step
                there = here[place]
                if id(there) not in own:
                    there = here[place] = there.copy()
                    own[id(there)] = there
                here = there
        if operation["op"] == "remove":
            del here[last]
        elif not isinstance(here, list):
            here[last] = operation["value"]
        elif last == "-":
            here.append(operation["value"])
        elif operation["op"] == "add":
            here.insert(int(last), operation["value"])
        else:
            here[int(last)] = operation["value"]
    return result


def escaped(step: str) -> str:
    """Return `step` as a token of a JSON pointer (RFC 6901)."""
    return step.replace("~", "~0").replace("/", "~1")


def steps_of(path: str) -> list[str]:
    """Return the keys and indices of a JSON pointer (RFC 6901)."""
    steps = path.split("/")[1:]
    return steps if "~" not in path else [step.replace("~1", "/").replace("~0", "~") for step in steps]
