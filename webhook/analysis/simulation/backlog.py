"""The pods that wait in kube-scheduler's queue after an attempt that failed, and the order of their next attempts.

When a running pod ends, all pods that wait are tried again: first those whose backoff is over, by priority, then by the
time of their last attempt; then the others, by the end of their backoff. So pods that have just arrived are tried
before pods that have waited long, as long as pods end every few seconds.

The order is kept without touching each pod at each event: after five attempts, all pods have the same backoff, so their
order among each other stays. Only younger ones can pass others.

Source: k8s.io/kubernetes/pkg/scheduler/backend/queue/scheduling_queue.go, moveAllToActiveOrBackoffQueue and
AddUnschedulableIfNotPresent; backoff_queue.go, getBackoffTime and lessBackoffCompletedWithPriority; active_queue.go,
unlockedPop with SchedulerPopFromBackoffQ
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from webhook.analysis.simulation.templates import Template

_INITIAL_SECONDS = 1
_LONGEST_SECONDS = 10
# From this number on, the backoff does not grow.
_ATTEMPTS_AT_LONGEST = 5

Order = tuple[float, int, float]


@dataclass(frozen=True, slots=True, eq=False)
class TracePod:
    """A pod of the trace: when it was created, and how long it runs; None: it does not end."""

    template: Template
    created_at: float
    duration_seconds: float | None


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that are placed together, at least `least` of them or none: one pod, or a gang.

    `rank` orders units of equal priority. `events` and `tried_at` are the number of events and the time at which the
    first attempt failed.
    """

    pods: list[TracePod]
    least: int = 1
    rank: float = 0
    events: int = 0
    tried_at: float = 0
    is_waiting: bool = False

    @property
    def priority(self) -> int:
        """Return the priority of the pods."""
        return self.pods[0].template.priority


@dataclass(slots=True)
class Backlog:
    """The units that wait; `count` are their pods. An event is an instant at which running pods end."""

    count: int = 0
    _events: int = 0
    _last_event: float = -math.inf
    _first_rank: float = 0
    _last_rank: float = 0
    _young: list[Unit] = field(default_factory=list)

    def add(self, unit: Unit, now: float) -> None:
        """Add a unit whose first attempt has failed."""
        self._last_rank += 1
        unit.rank, unit.events, unit.tried_at, unit.is_waiting = self._last_rank, self._events, now, True
        self._young.append(unit)
        self.count += len(unit.pods)

    def remove(self, unit: Unit) -> None:
        """Remove a unit that was placed."""
        unit.is_waiting = False
        self.count -= len(unit.pods)

    def order(self, unit: Unit, now: float) -> Order:
        """Return a value by which the units that wait are tried at an event at the time `now`."""
        tried_at = max(unit.tried_at, self._last_event)
        return self._expiry(1 + self._events - unit.events, tried_at, now), -unit.priority, unit.rank

    def end_event(self, now: float) -> None:
        """Take note that all units that wait were tried at `now`, in their order."""
        old = self._expiry(_ATTEMPTS_AT_LONGEST, self._last_event, now)
        young = [(self.order(unit, now), unit) for unit in self._young if unit.is_waiting]
        self._put([each for each in young if each[0][0] < old], is_first=True)
        self._put([each for each in young if each[0][0] > old], is_first=False)
        self._events += 1
        self._last_event = now
        self._young = [unit for _, unit in young if self._events - unit.events < _ATTEMPTS_AT_LONGEST - 1]

    def _put(self, found: Sequence[tuple[Order, Unit]], *, is_first: bool) -> None:
        """Put units before all others, or after them, in their order."""
        start = self._first_rank - len(found) if is_first else self._last_rank + 1
        for number, (_, unit) in enumerate(sorted(found, key=lambda each: each[0])):
            unit.rank = start + number
        if is_first:
            self._first_rank -= len(found)
        else:
            self._last_rank += len(found)

    @staticmethod
    def _expiry(attempts: int, tried_at: float, now: float) -> float:
        """Return the second in which the backoff ends; 0 if it is over."""
        if tried_at == -math.inf:
            return 0
        backoff = min(_LONGEST_SECONDS, _INITIAL_SECONDS << min(attempts - 1, _ATTEMPTS_AT_LONGEST))
        second = math.floor(tried_at + backoff)
        return second if second >= math.floor(now) else 0
