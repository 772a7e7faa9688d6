"""Find the lines of the fields in a YAML or JSON text."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def lines_of_fields(text: str | bytes, paths: Iterable[str]) -> dict[str, int]:
    """Return the lines of the fields at and around `paths` in the first object of `text`.

    Fields are named as in errors: `spec.accelerators[0].card`. The line is that of the field's key, or of its item in a
    list. A text that cannot be parsed has none.
    """
    try:
        node = next((node for node in yaml.compose_all(text, _Loader) if isinstance(node, yaml.MappingNode)), None)
    except yaml.YAMLError:
        return {}
    return lines_in(node, paths) if node else {}


def objects(text: str | bytes) -> list[yaml.Node]:
    """Return each object in `text`, in the order of `webhook.kube.documents.parse`.

    A text that cannot be parsed has none.
    """
    try:
        return [each for node in yaml.compose_all(text, _Loader) for each in _objects(node)]
    except yaml.YAMLError:
        return []


def lines_in(node: yaml.Node, paths: Iterable[str]) -> dict[str, int]:
    """Return the lines of the fields of an object at and around `paths`; only these fields are looked at."""
    wanted = {outer for path in paths for outer in _outward(path)}
    waiting, seen, lines = deque([("", node)]), set[tuple[str, int]](), dict[str, int]()
    while waiting:
        path, node = waiting.popleft()
        if (path, id(node)) in seen:
            continue
        seen.add((path, id(node)))
        for inner, place, value in _fields(path, node):
            if inner not in wanted:
                continue
            lines[inner] = place.start_mark.line + 1
            # The fields of an alias, which begins before its key, are in another place: they have the alias's line.
            if value.start_mark.index >= place.start_mark.index:
                waiting.append((inner, value))
    return lines


def line_of(path: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of the field at `path` or, if the text lacks it, of the nearest field around it."""
    return next((lines[outer] for outer in _outward(path) if outer in lines), None)


def _outward(path: str) -> Iterator[str]:
    """Yield the path, and those of the fields around it, the nearest first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


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


def _fields(path: str, node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Yield the path of each field or item of the node at `path`, its key or itself, and its value."""
    if isinstance(node, yaml.MappingNode):
        yield from ((f"{path}.{key.value}" if path else str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((f"{path}[{index}]", item, item) for index, item in enumerate(node.value))
