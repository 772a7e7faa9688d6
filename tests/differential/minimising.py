"""Making a disagreement small: what is not needed for it goes."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.worlds import World

T = TypeVar("T")
Holds = Callable[[World, Object], bool]

_Path = tuple[str | int, ...]

# Without these an object is no object, or another one.
_KEPT: frozenset[_Path] = frozenset(
    {
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("spec",),
        ("spec", "nodeName"),
        ("spec", "containers"),
        ("spec", "containers", 0),
        ("spec", "containers", 0, "name"),
        ("spec", "containers", 0, "image"),
        ("status",),
        ("status", "nominatedNodeName"),
        ("status", "allocatable"),
    }
)


def minimise(world: World, pod: Object, holds: Holds) -> tuple[World, Object]:
    """Return a part of `world` and of `pod` for which `holds` is still true."""
    nodes = _fewest(world.nodes, lambda some: bool(some) and holds(world.with_nodes(some), pod))
    world = world.with_nodes(nodes)
    world = replace(world, pods=_fewest(world.pods, lambda some: holds(replace(world, pods=some), pod)))
    world = replace(world, nominated=_fewest(world.nominated, lambda some: holds(replace(world, nominated=some), pod)))
    world = replace(world, workloads=_fewest(world.workloads, lambda some: holds(replace(world, workloads=some), pod)))
    world = replace(world, storage=_fewest(world.storage, lambda some: holds(replace(world, storage=some), pod)))
    (pod,) = _plainest((pod,), lambda some: holds(world, some[0]))
    world = replace(world, pods=_plainest(world.pods, lambda some: holds(replace(world, pods=some), pod)))
    world = replace(
        world, nominated=_plainest(world.nominated, lambda some: holds(replace(world, nominated=some), pod))
    )
    world = replace(world, storage=_plainest(world.storage, lambda some: holds(replace(world, storage=some), pod)))
    world = replace(world, nodes=_plainest(world.nodes, lambda some: holds(replace(world, nodes=some), pod)))
    return _without_idle_namespaces(world, pod), pod


def _fewest(items: tuple[T, ...], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return the `items` that cannot be removed; the tried pieces become smaller and smaller."""
    size = max(1, len(items) // 2)
    while items:
        spared = False
        start = 0
        while start < len(items):
            fewer = items[:start] + items[start + size :]
            if holds(fewer):
                items, spared = fewer, True
            else:
                start += size
        if size == 1 and not spared:
            break
        size = max(1, size // 2)
    return items


def _plainest(objects: tuple[Object, ...], holds: Callable[[tuple[Object, ...]], bool]) -> tuple[Object, ...]:
    """Return `objects` with only the fields that cannot be removed."""
    for index in range(len(objects)):
        spared: set[_Path] = set()
        while path := next((each for each in _paths(objects[index]) if each not in spared | _KEPT), None):
            spared.add(path)
            plainer = (*objects[:index], _without(objects[index], path), *objects[index + 1 :])
            if holds(plainer):
                objects = plainer
                # What follows in a list has moved up.
                spared = {each for each in spared if not isinstance(path[-1], int) or each[:-1] != path[:-1]}
    return objects


def _paths(value: Any, path: _Path = ()) -> Iterator[_Path]:
    """Yield the paths of the parts that can be left out, the largest parts first."""
    children: Sequence[tuple[str | int, Any]] = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    yield from ((*path, key) for key, _ in children)
    for key, child in children:
        yield from _paths(child, (*path, key))


def _without(obj: Object, path: _Path) -> Object:
    copy = deepcopy(obj)
    parent: Any = copy
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return copy


def _without_idle_namespaces(world: World, pod: Object) -> World:
    used = {each["metadata"]["namespace"] for each in (*world.pods, *world.nominated, pod)}
    return replace(world, namespaces=tuple(each for each in world.namespaces if each["metadata"]["name"] in used))
