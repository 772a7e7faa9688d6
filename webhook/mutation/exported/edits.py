"""The edits of pods as JSON patches in CEL. A mutation is a list of operations, empty for a pod without injection."""

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.kube.api.json_patch import escaped
from webhook.mutation.edits.editor import Path
from webhook.mutation.exported.cel import Cel, concatenated, json_patch, text, when


def pointer(path: Path) -> str:
    """Return the JSON pointer of a path."""
    return "".join("/" + escaped(str(step)) for step in path)


def value_at(path: Path) -> Cel:
    """Return the optional value at `path` of the pod."""
    return "object" + "".join(f".?{step}" if str(step).isidentifier() else f"[?{text(str(step))}]" for step in path)


def parents(path: Path, depth: int = 1) -> Cel:
    """Return the operations that add the missing parents of `path` below the first `depth` steps, which exist."""
    found = (path[:end] for end in range(depth + 1, len(path)))
    return concatenated(
        when(f"!{value_at(each)}.hasValue()", f"[{json_patch('add', text(pointer(each)), 'dyn({})')}]")
        for each in found
    )


def append(items: Cel, path: Path) -> Cel:
    """Return the operations that append each of `items`, of which there is one, to the list at `path`."""
    empty = when(f"!{value_at(path)}.hasValue()", f"[{json_patch('add', text(pointer(path)), 'dyn([])')}]")
    added = f"{items}.map(item, {json_patch('add', text(pointer(path) + '/-'), 'item')})"
    return concatenated((parents(path), empty, added))


def set_fields(fields: Iterable[tuple[Path, Cel]]) -> Cel:
    """Return the operations that set a value at each path, whose parents exist."""
    return concatenated(f"[{json_patch('add', text(pointer(path)), value)}]" for path, value in fields)


def mutation(condition: Cel, operations: Sequence[Cel] | Cel) -> dict[str, Any]:
    """Return the mutation with these operations where `condition` holds."""
    expression = operations if isinstance(operations, str) else concatenated(operations)
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": when(condition, expression)}}
