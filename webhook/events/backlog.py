"""A bounded queue of items that wait for their time; namespaces take turns, and equal items become one."""

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from webhook.events.report import Report

MOST_ITEMS = 1024
MOST_ITEMS_OF_NAMESPACE = 64


@dataclass(slots=True, eq=False)
class Item:
    """Equal reports that wait until `due_seconds`. Times in `…_seconds` are monotonic, others of the wall clock."""

    report: Report
    first_at: float
    last_at: float
    due_seconds: float
    expires_seconds: float
    count: int = field(default=1, kw_only=True)
    failures: int = field(default=0, kw_only=True)

    @property
    def namespace(self) -> str:
        """Return the namespace whose turn the item takes."""
        raise NotImplementedError

    @property
    def key(self) -> Hashable:
        """Return the key: items with equal keys become one."""
        raise NotImplementedError

    def absorb(self, later: Self) -> None:
        """Count the reports of `later`, too, and keep its note; this item keeps its time."""
        self.report = later.report
        self.first_at, self.last_at = min(self.first_at, later.first_at), max(self.last_at, later.last_at)
        self.count += later.count


T = TypeVar("T", bound=Item)


class Backlog(Generic[T]):
    """Items that wait, at most 64 of one namespace and 1,024 in total, so that no namespace can fill it."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[Hashable, T]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, item: T) -> bool:
        """Add `item`, or add it to the waiting item with its key; return False if there is no room."""
        items = self._by_namespace.get(item.namespace, OrderedDict())
        waiting = items.get(item.key)
        if waiting is not None:
            waiting.absorb(item)
            return True
        if self._size >= MOST_ITEMS or len(items) >= MOST_ITEMS_OF_NAMESPACE:
            return False
        items[item.key] = item
        self._by_namespace.setdefault(item.namespace, items)
        self._size += 1
        return True

    def remove(self, item: T) -> None:
        """Remove `item`, which waits."""
        items = self._by_namespace[item.namespace]
        del items[item.key]
        self._size -= 1
        if not items:
            del self._by_namespace[item.namespace]

    def take_due(self, now: float) -> T | None:
        """Remove and return an item that is due at `now`, of the namespace that waited longest for its turn."""
        for namespace, items in self._by_namespace.items():
            due = next((item for item in items.values() if item.due_seconds <= now), None)
            if due is not None:
                self._by_namespace.move_to_end(namespace)
                self.remove(due)
                return due
        return None

    def of_namespace(self, namespace: str) -> Iterator[T]:
        """Return the waiting items of `namespace`, the last added first."""
        return reversed(self._by_namespace.get(namespace, OrderedDict()).values())

    def next_due_seconds(self) -> float:
        """Return the time at which the next item is due; infinite without items."""
        due = (item.due_seconds for items in self._by_namespace.values() for item in items.values())
        return min(due, default=math.inf)

    def expedite(self, now: float) -> None:
        """Make every item due at `now`."""
        for items in self._by_namespace.values():
            for item in items.values():
                item.due_seconds = min(item.due_seconds, now)
