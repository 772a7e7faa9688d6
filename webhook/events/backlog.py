"""The bounded queue of reports that will become Events. Equal reports are merged."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from webhook.events.report import Report
from webhook.events.subject import ObjectReference

MOST_ITEMS = 1024
MOST_ITEMS_OF_NAMESPACE = 64


@dataclass(slots=True, eq=False)
class PendingReport:
    """Merged equal reports on the pods of a controller, or on one pod. They are due at `due_seconds` (monotonic).

    The other times are wall time. `count` is the number of pods that are not looked up yet. `targets` are the objects
    that were found, each with the number of reports on it.
    """

    report: Report
    subject: ObjectReference
    first_at: float
    last_at: float
    due_seconds: float
    count: int = 1
    targets: list[tuple[ObjectReference, int]] = field(default_factory=list)
    lookups: int = 0
    failures: int = 0

    @property
    def key(self) -> tuple[ObjectReference, str, str]:
        """Return the key by which equal reports are merged."""
        return self.subject, self.report.reason, self.report.topic

    def absorb(self, later: Self) -> None:
        """Add the count of `later`, and take over its note. The due time does not change."""
        self.report = later.report
        self.first_at, self.last_at = min(self.first_at, later.first_at), max(self.last_at, later.last_at)
        self.count += later.count
        self.targets += later.targets


class Backlog:
    """The waiting reports: at most 1,024 in total and 64 of each namespace, so that no namespace can fill the queue."""

    def __init__(self) -> None:
        self._items: dict[tuple[ObjectReference, str, str], PendingReport] = {}
        self._sizes: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: PendingReport) -> bool:
        """Add `item`, or merge it into the waiting report with the same key. Return False if there is no room."""
        waiting, namespace = self._items.get(item.key), item.subject.namespace
        if waiting is not None:
            waiting.absorb(item)
            return True
        if len(self._items) >= MOST_ITEMS or self._sizes[namespace] >= MOST_ITEMS_OF_NAMESPACE:
            return False
        self._items[item.key] = item
        self._sizes[namespace] += 1
        return True

    def withdraw(self, subject: ObjectReference) -> None:
        """Remove the latest report on a pod of `subject`, if the pod is not looked up yet."""
        for item in reversed(self._items.values()):
            if item.subject == subject and item.report.is_on_pod and item.count and not item.lookups:
                item.count -= 1
                if not (item.count or item.targets):
                    self._remove(item)
                return

    def take_due(self, now: float) -> PendingReport | None:
        """Remove and return the first report that is due at `now`."""
        due = next((item for item in self._items.values() if item.due_seconds <= now), None)
        if due is not None:
            self._remove(due)
        return due

    def next_due_seconds(self) -> float:
        """Return the time at which the next report is due, or infinity if there are no reports."""
        return min((item.due_seconds for item in self._items.values()), default=math.inf)

    def _remove(self, item: PendingReport) -> None:
        del self._items[item.key]
        self._sizes[item.subject.namespace] -= 1
        if not self._sizes[item.subject.namespace]:
            del self._sizes[item.subject.namespace]
