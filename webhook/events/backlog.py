"""Observations of pods, the Events that are made from them, and the bounded queue in which both wait.

Events have the form of core/v1, with a count and a lastTimestamp: `kubectl describe` prints "(x12 over 3m)", and
`kubectl get events --sort-by=.lastTimestamp` sorts them, which it does not with events.k8s.io/v1.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Generic, Self, TypeVar

from webhook.events.report import Report
from webhook.events.subject import ObjectReference, Subject
from webhook.kube.names import DEFAULT_NAMESPACE

COMPONENT = "placement-webhook"
_LONGEST_NAME = 253
MOST_ITEMS = 1024
MOST_ITEMS_OF_NAMESPACE = 64


@dataclass(slots=True, eq=False)
class Item:
    """Equal reports that wait until `due_seconds`. Times in `…_seconds` are monotonic, others of the wall clock.

    Items take the turn of their `namespace`, and those with equal keys become one.
    """

    report: Report
    first_at: float
    last_at: float
    due_seconds: float
    expires_seconds: float
    count: int = field(default=1, kw_only=True)
    failures: int = field(default=0, kw_only=True)
    namespace: str = field(init=False)
    key: str = field(init=False)

    def absorb(self, later: Self) -> None:
        """Count the reports of `later`, too, and keep its note; this item keeps its time."""
        self.report = later.report
        self.first_at, self.last_at = min(self.first_at, later.first_at), max(self.last_at, later.last_at)
        self.count += later.count


@dataclass(slots=True, eq=False)
class Observation(Item):
    """Pods of one owner with equal reports."""

    subject: Subject
    lookups: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self.namespace = self.subject.namespace
        self.key = f"{self.subject.identity}\0{self.report.reason}\0{self.report.topic}"

    def absorb(self, later: Self) -> None:
        """Count the pods of `later`, too, and keep its note."""
        Item.absorb(self, later)  # super() would look for the class without slots
        self.subject = self.subject.common_with(later.subject)


@dataclass(slots=True, eq=False)
class PendingEvent(Item):
    """An Event on `target` that counts `count` reports more; `source` is that of its subject.

    Its key is its name, which is equal in every replica, so that replicas count in one Event.
    """

    target: ObjectReference
    source: str

    def __post_init__(self) -> None:
        target, report = self.target, self.report
        # The API server takes an Event on a cluster-scoped object only in `default`.
        self.namespace = target.namespace or DEFAULT_NAMESPACE
        text = f"{target.uid}\0{target.name}\0{report.reason}\0{report.topic}"
        suffix = f".{blake2b(text.encode(), digest_size=8).hexdigest()}"
        self.key = target.name[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix

    @property
    def happens_once(self) -> bool:
        """Return whether there is nothing to count: a pod is admitted once, in rounds that replicas share."""
        return self.report.is_on_pod and self.target.kind == "Pod"

    def manifest(self, replica: str) -> dict[str, Any]:
        """Return the new Event, reported by `replica`."""
        target = self.target
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.key, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": target.api_version,
                "kind": target.kind,
                "namespace": target.namespace,
                "name": target.name,
                "uid": target.uid,
            },
            "type": "Warning",
            "reason": self.report.reason,
            "message": self.report.note,
            "action": "Admit",
            "count": self.count,
            "firstTimestamp": _rfc3339(self.first_at),
            "lastTimestamp": _rfc3339(self.last_at),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": replica,
        }

    def patch(self, count: int, resource_version: str) -> dict[str, Any]:
        """Return the merge patch of the Event that has `count` at `resource_version`."""
        return {
            "metadata": {"resourceVersion": resource_version},
            "count": count + self.count,
            "lastTimestamp": _rfc3339(self.last_at),
            "message": self.report.note,
        }


T = TypeVar("T", bound=Item)


class Backlog(Generic[T]):
    """Items that wait; namespaces take turns, and equal items become one.

    There are at most 64 of one namespace and 1,024 in total, so that no namespace can fill it.
    """

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[str, T]] = OrderedDict()
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


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
