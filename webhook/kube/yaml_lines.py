"""Find the lines of the fields in a YAML or JSON text."""

from collections import deque
from collections.abc import Iterator, Mapping

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def lines_of_fields(text: str | bytes) -> dict[str, int]:
    """Return the line of each field in the first object of `text`: that of its key, or of its item in a list.

    Fields are named as in errors: `spec.accelerators[0].card`. A text that cannot be parsed has none.
    """
    try:
        node = next((node for node in yaml.compose_all(text, _Loader) if isinstance(node, yaml.MappingNode)), None)
    except yaml.YAMLError:
        return {}
    return dict(_lines(node)) if node else {}


def lines_of_objects(text: str | bytes) -> list[dict[str, int]]:
    """Return the lines of the fields of each object in `text`, in the order of `webhook.kube.documents.parse`.

    A text that cannot be parsed has none.
    """
    try:
        return [dict(_lines(each)) for node in yaml.compose_all(text, _Loader) for each in _objects(node)]
    except yaml.YAMLError:
        return []


def line_of(path: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of the field at `path` or, if the text lacks it, of the nearest field around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yield an object, or the items of a list of objects."""
    if not isinstance(node, yaml.MappingNode):
        return
    fields = {key.value: value for key, value in node.value}
    kind, items = fields.get("kind"), fields.get("items")
    is_list = isinstance(kind, yaml.ScalarNode) and str(kind.value).endswith("List")
    if is_list and isinstance(items, yaml.SequenceNode):
        for each in items.value:
            yield from _objects(each)
    else:
        yield node


def _lines(node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Yield the fields in a node, each node once: an alias has the lines of its anchor's fields."""
    waiting = deque([("", node)])
    seen: set[int] = set()
    while waiting:
        path, node = waiting.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            fields = [(f"{path}.{key.value}" if path else str(key.value), key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            fields = [(f"{path}[{index}]", item, item) for index, item in enumerate(node.value)]
        else:
            continue
        for inner, place, value in fields:
            yield inner, place.start_mark.line + 1
            waiting.append((inner, value))
