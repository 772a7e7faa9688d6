"""The edits of pods as JSON patches in CEL: lists of operations, which see the pod as it was before all of them."""

from webhook.kube.api.json_patch import escaped
from webhook.mutation.edits.editor import Path
from webhook.mutation.exported.cel import Cel, concatenated, json_patch, text, when
from webhook.policy.policy import Policy


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


def value_when_packed(policy: Policy, path: Path) -> Cel:
    """Return the optional value at `path` of the pod with the label of packing, which is added first."""
    packing, own = policy.spec.bin_packing, value_at(path)
    if path != ("metadata", "labels", packing.label_key):
        return own
    return f"{own}.or(variables.isPacked ? optional.of({text(packing.label_value)}) : optional.none())"


def append(items: Cel, path: Path, depth: int = 1) -> Cel:
    """Return the operations that append each of `items`, at least one, to the list at `path`.

    The first `depth` steps of the path exist.
    """
    empty = when(f"!{value_at(path)}.hasValue()", f"[{json_patch('add', text(pointer(path)), 'dyn([])')}]")
    added = f"{items}.map(item, {json_patch('add', text(pointer(path) + '/-'), 'item')})"
    return concatenated((parents(path, depth), empty, added))
