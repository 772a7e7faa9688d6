"""The pods that wait in kube-scheduler's queue after a failed attempt, and the order of their next attempts.

When a running pod ends, all waiting pods are tried again. First come the pods whose backoff is over, by priority, then
by the time of their last attempt; then the others, by the end of their backoff. So while pods end every few seconds,
pods that have just arrived are tried before pods that have waited for long.

The order is maintained without updating each pod at each event. After five attempts, all pods have the same backoff, so
their relative order stays. Only younger pods can pass others.

Source: k8s.io/kubernetes/pkg/scheduler/backend/queue/scheduling_queue.go, moveAllToActiveOrBackoffQueue and
AddUnschedulableIfNotPresent; backoff_queue.go, getBackoffTime and lessBackoffCompletedWithPriority; active_queue.go,
unlockedPop with SchedulerPopFromBackoffQ
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placement_planner.simulation.templates import Template
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.scorer import PodSignature

_INITIAL_SECONDS = 1
_LONGEST_SECONDS = 10
# From this number on, the backoff does not grow.
_ATTEMPTS_AT_LONGEST = 5

Order = tuple[float, int, float]
Requests = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class TracePod:
    """A pod of the trace: the time of its creation, and its duration, or None if it does not end.

    `is_restarted` is true if a controller creates the pod again after an eviction.
    """

    template: Template
    created_at: float
    duration_seconds: float | None
    is_restarted: bool = True


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that are placed together, either at least `least` of them or none. A unit is one pod or a gang.

    `rank` orders units of equal priority. `events` is the number of events, and `tried_at` the time, when the first
    attempt failed.
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
    """The waiting units. `count` is the number of their pods. An event is a time at which running pods end."""

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
        """Return the sort key of a waiting unit for the attempts at an event at the time `now`."""
        tried_at = max(unit.tried_at, self._last_event)
        return self._expiry(1 + self._events - unit.events, tried_at, now), -unit.priority, unit.rank

    def end_event(self, now: float) -> None:
        """Record that all waiting units were tried at `now`, in their order."""
        old = self._expiry(_ATTEMPTS_AT_LONGEST, self._last_event, now)
        young = [(self.order(unit, now), unit) for unit in self._young if unit.is_waiting]
        # They come before all others. Those whose backoff ends later have failed once: they are the last already.
        first = sorted((each for each in young if each[0][0] < old), key=lambda each: each[0])
        self._first_rank -= len(first)
        for number, (_, unit) in enumerate(first):
            unit.rank = self._first_rank + number
        self._events += 1
        self._last_event = now
        self._young = [unit for _, unit in young if self._events - unit.events < _ATTEMPTS_AT_LONGEST - 1]

    @staticmethod
    def _expiry(attempts: int, tried_at: float, now: float) -> float:
        """Return the second in which the backoff ends, or 0 if it is over."""
        if tried_at == -math.inf:
            return 0
        backoff = min(_LONGEST_SECONDS, _INITIAL_SECONDS << min(attempts - 1, _ATTEMPTS_AT_LONGEST))
        second = math.floor(tried_at + backoff)
        return second if second >= math.floor(now) else 0


class QueueingHint(NamedTuple):
    """Says which placed pods can make a node feasible for a waiting pod in `namespace`.

    All of `affinity` select them, or one of `spread` does and they are in the same namespace.
    """

    namespace: str
    affinity: Sequence[PodTerm]
    spread: Sequence[LabelSelector | None]

    def queues(self, placed: Template, snapshot: Snapshot) -> bool:
        """Return whether to try the waiting pod again once a pod of the template `placed` is on a node of `snapshot`.

        The hints of kube-scheduler do not know the labels of namespaces. Here they count, as in its filter.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins, interpodaffinity/plugin.go and
        podtopologyspread/plugin.go, isSchedulableAfterAssignedPodChange
        """
        namespace, labels = placed.running.namespace, placed.running.labels
        if namespace == self.namespace and any(selector_matches(each, labels) for each in self.spread):
            return True
        facts = snapshot.namespaces.get(namespace)
        of_namespace = facts.labels if facts else {}
        return bool(self.affinity) and all(each.matches(namespace, of_namespace, labels) for each in self.affinity)


@dataclass(slots=True, eq=False)
class Group:
    """Units whose pods have the same signature and which need at least `least` pods placed. A gang is a separate group.

    `requests` must be free on a node. `reads_pods` is true if pods on other nodes also affect whether a node fits.
    `hints` are for each template of the pods. They are those of the last attempt.
    `failed_at` is the state of the cluster in which a unit found no node and no pods to evict.
    """

    template: Template
    least: int
    requests: Requests
    reads_pods: bool = False
    hints: Sequence[QueueingHint] = ()
    units: list[Unit] = field(default_factory=list)
    failed_at: int | None = None

    def may_fit(self, snapshot: Snapshot, freed: Iterable[NodeInfo]) -> bool:
        """Return false if the units, which did not fit before, cannot fit after pods have left the `freed` nodes."""
        if not self.reads_pods and not any(map(self.has_room, freed)):
            return False
        if self.least <= 1 and not self.reads_pods:
            return True
        most: Column = snapshot.allowed_pods - snapshot.load.pods
        for resource, amount in self.requests:
            most = np.minimum(most, (snapshot.allocatable(resource) - snapshot.requested(resource)) // amount)
        return int(np.maximum(most, 0).sum()) >= self.least

    def waits_for(self, placed: Template, snapshot: Snapshot) -> bool:
        """Return whether the units may fit once a pod of the template `placed` is on a node of `snapshot`."""
        return any(each.queues(placed, snapshot) for each in self.hints)

    def has_room(self, info: NodeInfo) -> bool:
        """Return whether the requests of a pod are free on a node."""
        offered, used = info.node.allocatable, info.requested
        return all(offered.get(name, 0) - used.get(name, 0) >= amount for name, amount in self.requests)


class Groups:
    """The groups of the units that wait or have waited."""

    def __init__(self) -> None:
        self._by_signature: dict[tuple[int, PodSignature], Group] = {}
        self._by_template: dict[Template, Group] = {}
        self._waiting: dict[Group, None] = {}

    @property
    def waiting(self) -> list[Group]:
        """Return the groups with a waiting unit."""
        return [*self._waiting]

    def of(self, unit: Unit) -> Group:
        """Return the group of `unit`."""
        template = unit.pods[0].template
        if unit.least > 1:
            return _group(template, unit.least)
        group = self._by_template.get(template)
        if group is None:
            key = id(template.scheduler), template.signature
            group = self._by_signature.get(key)
            if group is None:
                group = self._by_signature[key] = _group(template, 1)
            self._by_template[template] = group
        return group

    def wait(self, group: Group, unit: Unit, snapshot: Snapshot) -> None:
        """Add a unit, which did not fit on `snapshot`, to its group."""
        group.units.append(unit)
        if len(group.units) == 1:
            _read(group, snapshot)
        self._waiting[group] = None

    def settle(self, group: Group, snapshot: Snapshot) -> None:
        """Drop the units of a group that no longer wait. The others did not fit on `snapshot`."""
        group.units = [unit for unit in group.units if unit.is_waiting]
        if group.units:
            _read(group, snapshot)
        else:
            self._waiting.pop(group, None)


def _read(group: Group, snapshot: Snapshot) -> None:
    """Store in `group` which pods of `snapshot` its units read. All units read others once a pod has anti-affinity.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins, interpodaffinity/plugin.go and
    podtopologyspread/plugin.go, isSchedulableAfterAssignedPodChange
    """
    scheduler, signature = group.template.scheduler.scheduler, group.template.signature
    info = signature.info.normalized_for(snapshot)
    group.requests = scheduler.profile.counted_requests(info)
    group.reads_pods = scheduler.reads_other_nodes(signature, snapshot)
    # The pods of a gang can differ. Of single pods, all have the signature of the group.
    templates = dict.fromkeys(pod.template for pod in group.units[0].pods) if group.least > 1 else (group.template,)
    found = [_hint(template, snapshot) for template in templates]
    group.hints = [each for each in found if each.affinity or each.spread]


def _hint(template: Template, snapshot: Snapshot) -> QueueingHint:
    info = template.signature.info.normalized_for(snapshot)
    filters = template.scheduler.scheduler.profile.filters
    spreads = (each for each in filters if isinstance(each, PodTopologySpread))
    selectors = tuple(selector for each in spreads for selector in each.selectors(info, snapshot))
    return QueueingHint(template.running.namespace, info.inter_pod.terms.required, selectors)


def _group(template: Template, least: int) -> Group:
    profile = template.scheduler.scheduler.profile
    return Group(template, least, profile.counted_requests(template.signature.info))
