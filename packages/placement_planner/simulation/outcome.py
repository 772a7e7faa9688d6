"""The outcome of one simulated run, and the recorder that computes it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from placement_planner.simulation.arrival import IsCard
from placement_planner.simulation.backlog import TracePod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.amounts import CPU, MEMORY

Amounts = NDArray[np.float64]
Shape = tuple[int, int, int]
"""The CPU, memory and cards that a pod requests, in any units that are used alike."""

_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Waits:
    """The pods whose `by` is `value`, and the waits in seconds of the placed ones.

    `by` is `all`, `cards`, `gang` (the number of pods that start together), `type` or `priority`. The wait of an
    evicted pod also includes the time until it started again, but not the time in which it ran. `p50` and `p99` are
    None if no pod was placed.
    """

    by: str
    value: str
    pods: int
    never_placed: int
    p50: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The number of pods that have no node when all other pods have ended, and the reason."""

    pods: int
    reason: str


@dataclass(slots=True)
class Evictions:
    """The evicted pods of a priority. `ended` of them are lost, because no controller creates them again.

    The hours are the lost work, from the start of the pods to the end of their grace periods.
    """

    priority: int
    pods: int = 0
    ended: int = 0
    pod_hours: float = 0
    card_hours: float = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at one time: the allocated cards, and the fragmented free cards, in percent of all cards.

    `waiting` is the number of waiting pods.
    """

    seconds: float
    allocated: float
    fragmented: float
    waiting: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run. `allocated` and `fragmented` are means over the time in which pods arrive, in percent.

    `most_allocated` is the largest allocated share of the cards, and `last_allocated` the share when the last pod has
    arrived. `unmodelled` are plugins that are relevant to a pod but were not evaluated. `unplaced` are the reasons of
    the most pods that were never placed. `evictions` are None if preemption is off.
    """

    policy: str
    profile: str
    seed: int
    nodes: int
    cards: int
    pods: int
    denied: int
    placed: int
    allocated: float
    most_allocated: float
    last_allocated: float
    fragmented: float
    waits: tuple[Waits, ...]
    series: tuple[Sample, ...]
    unmodelled: tuple[str, ...] = ()
    denial: str = ""
    unplaced: tuple[Unplaced, ...] = ()
    evictions: tuple[Evictions, ...] | None = None


class Mix:
    """The expected shapes of pods, each with its share of the pods."""

    def __init__(self, counts: Iterable[tuple[Shape, int]]) -> None:
        """Store the shapes, at least one, with their numbers of pods."""
        shapes, numbers = zip(*counts, strict=True)
        self._shapes: Amounts = np.array(shapes, dtype=np.float64)
        self._shares: Amounts = np.array(numbers, dtype=np.float64) / sum(numbers)

    def fragmentation(self, free: Amounts) -> Amounts:
        """Return for each node the average number of free cards that a pod of the mix cannot use.

        `free` has a row with the free CPU, memory and cards of each node. A pod can use all cards of a node that can
        take it, and none of other nodes.

        Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023, section 3: the fragmentation of a node is the
        sum over the pods of a typical workload of their popularity times the GPUs that they cannot use.
        """
        fits = (free[:, None, :] >= self._shapes).all(axis=2)
        unusable: Amounts = free[:, 2] - (free[:, 2, None] * fits) @ self._shares
        return unusable


class Cards:
    """The cards of a cluster, and their fragmentation for the pods of a trace, with a mix for each resource."""

    def __init__(self, snapshot: Snapshot, is_card: IsCard, requests: Iterable[Iterable[tuple[str, int]]]) -> None:
        """Read the mix from the `requests` of each pod of the trace."""
        self.resources = sorted(name for name in snapshot.allocatable_columns if is_card(name))
        self.total = sum(int(snapshot.allocatable(name).sum()) for name in self.resources)
        shapes: dict[str, Counter[Shape]] = {name: Counter() for name in self.resources}
        for pod in requests:
            amounts = dict(pod)
            for name in self.resources:
                if cards := amounts.get(name, 0):
                    shapes[name][amounts.get(CPU, 0), amounts.get(MEMORY, 0), cards] += 1
        self._mixes = {name: Mix(found.most_common()) for name, found in shapes.items() if found}

    def requested(self, snapshot: Snapshot) -> int:
        """Return the number of allocated cards."""
        return sum(int(snapshot.requested(name).sum()) for name in self.resources)

    def of(self, requests: Mapping[str, int]) -> int:
        """Return the cards in the requests of a pod."""
        return sum(requests.get(name, 0) for name in self.resources)

    def fragmented(self, snapshot: Snapshot) -> float:
        """Return the average number of free cards that a pod of the trace cannot use.

        Cards of a resource that no pod of the trace requests are left out.
        """
        return sum(float(mix.fragmentation(_free(snapshot, name)).sum()) for name, mix in self._mixes.items())


def _free(snapshot: Snapshot, resource: str) -> Amounts:
    columns = [snapshot.allocatable(name) - snapshot.requested(name) for name in (CPU, MEMORY, resource)]
    return np.maximum(np.stack(columns, axis=1), 0).astype(np.float64)


@dataclass
class Recorder:
    """Records the state of a cluster from the time `start` to `end`, between which pods arrive."""

    cards: Cards
    start: float
    end: float
    series: list[Sample] = field(default_factory=list)
    waited: dict[TracePod, float] = field(default_factory=dict)
    evictions: dict[int, Evictions] = field(default_factory=dict)
    most: int = 0
    _waits_since: dict[TracePod, float] = field(default_factory=dict)
    _card_seconds: float = 0
    _since: float = 0
    _allocated: int = 0

    def begin(self, snapshot: Snapshot) -> None:
        """Record the cluster before the first pod arrives."""
        self._since = self.start
        self._allocated = self.most = self.cards.requested(snapshot)

    def change(self, cards: int) -> None:
        """Record that `cards` more cards are allocated."""
        self._allocated += cards

    def place(self, pod: TracePod, now: float) -> None:
        """Record that `pod` starts."""
        self.waited[pod] = now - self._waits_since.get(pod, pod.created_at)
        self.change(pod.template.cards)

    def evict(self, priority: int, restarted: TracePod | None, now: float, ran_seconds: float, cards: int) -> None:
        """Record the eviction, at `now`, of a pod that has run for `ran_seconds`.

        `restarted` is the pod that waits again, or None.
        """
        found = self.evictions.setdefault(priority, Evictions(priority))
        found.pods += 1
        found.pod_hours += ran_seconds / 3600
        found.card_hours += cards * ran_seconds / 3600
        if restarted is None:
            found.ended += 1
        else:
            self._waits_since[restarted] = now - self.waited.pop(restarted)

    def advance(self, now: float, snapshot: Snapshot, waiting: int) -> None:
        """Record the state that has lasted until `now`."""
        until = min(now, self.end)
        self._card_seconds += self._allocated * (until - self._since)
        self._since = until
        self.most = max(self.most, self._allocated)
        step = (self.end - self.start) / _SAMPLES
        due = 0 if not step else math.ceil(min((until - self.start) / step, _SAMPLES))
        if len(self.series) < due:
            fragmented = self._percent(self.cards.fragmented(snapshot))
            for number in range(len(self.series), due):
                at = round(self.start + number * step, 3)
                self.series.append(Sample(at, self._percent(self._allocated), fragmented, waiting))

    def finish(self, snapshot: Snapshot, waiting: int) -> None:
        """Record the state after the last pod has arrived and was tried."""
        fragmented = self._percent(self.cards.fragmented(snapshot))
        self.most = max(self.most, self._allocated)
        self.series.append(Sample(self.end, self._percent(self._allocated), fragmented, waiting))

    @property
    def allocated(self) -> float:
        """Return the mean over time of the allocated cards, in percent."""
        span = self.end - self.start
        return self._percent(self._card_seconds / span) if span else self.series[-1].allocated

    @property
    def fragmented(self) -> float:
        """Return the mean of the fragmented free cards over all samples, in percent."""
        return round(sum(each.fragmented for each in self.series) / len(self.series), 3)

    @property
    def evicted(self) -> tuple[Evictions, ...]:
        """Return the evictions by priority, the lowest first."""
        found = sorted(self.evictions.values(), key=lambda each: each.priority)
        return tuple(
            replace(each, pod_hours=round(each.pod_hours, 6), card_hours=round(each.card_hours, 6)) for each in found
        )

    @property
    def most_allocated(self) -> float:
        """Return the largest allocated share of the cards, in percent."""
        return self._percent(self.most)

    def waits(self, pods: Sequence[TracePod], *, by_priority: bool = False) -> tuple[Waits, ...]:
        """Return the waits of all pods, and by requested cards, by size of the gang, by workload type, by priority."""
        levels = sorted({pod.template.priority for pod in pods}) if by_priority else []
        sizes = sorted({pod.template.cards for pod in pods})
        gangs = sorted({pod.template.least for pod in pods}) if any(pod.template.gang for pod in pods) else []
        types = sorted({pod.template.workload_type for pod in pods})
        return (
            self._waits("all", "", pods),
            *(self._waits("cards", str(size), [p for p in pods if p.template.cards == size]) for size in sizes),
            *(self._waits("gang", str(size), [p for p in pods if p.template.least == size]) for size in gangs),
            *(self._waits("type", each, [p for p in pods if p.template.workload_type == each]) for each in types),
            *(self._waits("priority", str(each), [p for p in pods if p.template.priority == each]) for each in levels),
        )

    def _waits(self, by: str, value: str, pods: Sequence[TracePod]) -> Waits:
        found = sorted(self.waited[pod] for pod in pods if pod in self.waited)
        return Waits(by, value, len(pods), len(pods) - len(found), _percentile(found, 0.5), _percentile(found, 0.99))

    def _percent(self, cards: float) -> float:
        return round(100 * cards / self.cards.total, 3) if self.cards.total else 0.0


def _percentile(values: Sequence[float], share: float) -> float | None:
    """Return the percentile `share` of `values`, which must be sorted, or None if there are none."""
    return round(values[max(math.ceil(share * len(values)), 1) - 1], 3) if values else None
