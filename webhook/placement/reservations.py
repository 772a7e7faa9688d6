"""Room on nodes that is reserved for pods that wait: admitted or pending, but not bound yet.

kube-scheduler takes pending pods from its queue by priority, then by time. So a pod finds the nodes with the pods that
wait before it. Which node each of them gets is predicted, and its room there is reserved until it is known.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort/priority_sort.go
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.placement.framework.result import Placement
from webhook.placement.pod.preemption import Preemption

K = TypeVar("K", bound=Hashable)

# A snapshot that differs in more nodes is made from scratch.
_MOST_CHANGED = 200
# Each snapshot of a priority is kept current, which takes a fraction of a millisecond for each reservation.
_MOST_SNAPSHOTS = 16
# Classes of pods are never deleted, so a snapshot with so many more than it needs is made again.
_MOST_OLD_CLASSES = 500
# In a larger cluster kube-scheduler scores a part of the nodes, so no set of best nodes can be predicted.
# Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, minFeasibleNodesToFind
MOST_SCORED_NODES = 100


@dataclass(frozen=True, slots=True)
class Reservation:
    """The room of `pod` on the node `pod.node_name`. Pods of a lower `priority` come after it.

    `tied` are the nodes that kube-scheduler can pick, if there are several; empty in a large cluster.
    """

    pod: RunningPod
    priority: int
    tied: frozenset[str] = frozenset()


class Reservations(Generic[K]):
    """The reservations on the nodes of `base`, by a key for each pod. It is immutable; results are kept for reuse."""

    __slots__ = ("_counts", "_levels", "_on_node", "_snapshots", "base", "by_key")

    def __init__(
        self,
        base: Snapshot,
        by_key: Mapping[K, Reservation],
        snapshots: Mapping[int, Snapshot] | None = None,
        counts: Mapping[int, int] | None = None,
    ) -> None:
        """Create the reservations. `snapshots` are known results of `before`, `counts` those of each priority."""
        self.base = base
        self.by_key = by_key
        self._snapshots = dict(snapshots or {})
        self._counts = counts
        self._levels: tuple[int, ...] | None = None
        self._on_node: dict[str, list[K]] | None = None

    def __len__(self) -> int:
        return len(self.by_key)

    def priority_of(self, preemption: Preemption) -> int:
        """Return the priority of a new pod with `preemption`; its class is looked up in `base`."""
        return preemption.normalized_for(self.base).priority or 0

    def before_pod(self, preemption: Preemption) -> Snapshot:
        """Return `base` with the reserved pods that come before a new pod with `preemption`."""
        return self.before(self.priority_of(preemption))

    def before(self, priority: int) -> Snapshot:
        """Return `base` with the reserved pods that come before a new pod of `priority`, shown as running."""
        level = next((each for each in self.levels if each >= priority), None)
        if level is None:
            return self.base
        snapshot = self._snapshots.get(level)
        if snapshot is None:
            self._keep_few_snapshots()
            snapshot = self._snapshots[level] = self._with_pods(_layered(self.base), level, self.keys_by_node)
        return snapshot

    @property
    def all_shown(self) -> Snapshot:
        """Return `base` with all reserved pods, shown as running."""
        return self.before(self.levels[0]) if self.levels else self.base

    @property
    def levels(self) -> tuple[int, ...]:
        """Return the priorities of the reservations, the lowest first."""
        if self._levels is None:
            self._levels = tuple(sorted(self.counts))
        return self._levels

    @property
    def counts(self) -> Mapping[int, int]:
        """Return the number of reservations by priority."""
        if self._counts is None:
            self._counts = Counter(each.priority for each in self.by_key.values())
        return self._counts

    def count_before(self, priority: int) -> int:
        """Return how many pods have room and come before a new pod of `priority`."""
        return sum(count for level, count in self.counts.items() if level >= priority)

    @property
    def keys_by_node(self) -> Mapping[str, Collection[K]]:
        """Return the keys of the reservations on each node."""
        if self._on_node is None:
            found: dict[str, list[K]] = {}
            for key, each in self.by_key.items():
                found.setdefault(each.pod.node_name, []).append(key)
            self._on_node = found
        return self._on_node

    def after_on_node(self, node: str, priority: int) -> tuple[K, ...]:
        """Return the keys of the pods of a lower priority than `priority` with room on `node`."""
        if not self.levels or self.levels[0] >= priority:
            return ()
        return tuple(key for key in self.keys_by_node.get(node, ()) if self.by_key[key].priority < priority)

    def with_reservation(self, key: K, reservation: Reservation) -> "Reservations[K]":
        """Return these reservations and another one, on a node of `base`."""
        node, added = reservation.pod.node_name, (reservation.pod,)
        # Another thread can add results of `before` meanwhile.
        snapshots = dict(self._snapshots)
        for level, snapshot in [*snapshots.items()]:
            if _has_old_classes(snapshot, len(self)):
                del snapshots[level]
            elif level <= reservation.priority:
                info = snapshot.nodes[snapshot.rows[node]].with_pods(added)
                snapshots[level] = updated(snapshot, (info,), snapshot.generation)
        by_key = {**self.by_key, key: reservation}
        counts = None
        if key not in self.by_key:
            counts = {**self.counts, reservation.priority: self.counts.get(reservation.priority, 0) + 1}
        return Reservations(self.base, by_key, snapshots, counts)

    def with_all(self, reservations: Mapping[K, Reservation]) -> "Reservations[K]":
        """Return these reservations and others, on nodes of `base`."""
        return Reservations(self.base, {**self.by_key, **reservations})

    def without(self, keys: Iterable[K]) -> "Reservations[K]":
        """Return the reservations without those of `keys`."""
        gone = {key: self.by_key[key] for key in keys if key in self.by_key}
        if not gone:
            return self
        left = Reservations(self.base, {key: each for key, each in self.by_key.items() if key not in gone})
        nodes = {each.pod.node_name for each in gone.values()}
        for level, snapshot in dict(self._snapshots).items():
            if level in left.levels:
                left._snapshots[level] = left._with_pods(snapshot, level, nodes)
        return left

    def on(self, base: Snapshot) -> "Reservations[K]":
        """Return the same reservations on another state of the cluster, without those on nodes that are gone."""
        if base is self.base:
            return self
        by_key = {key: each for key, each in self.by_key.items() if each.pod.node_name in base.rows}
        moved = Reservations(base, by_key)
        changed = _changed_nodes(self.base, base)
        if changed is not None and base.pods.classes is self.base.pods.classes:
            for level, snapshot in dict(self._snapshots).items():
                if _has_old_classes(snapshot, len(self)):
                    continue
                known = moved._with_pods(snapshot, level, changed)
                moved._snapshots[level] = replace(base, nodes=known.nodes, load=known.load, pods=known.pods)
        return moved

    def isolated(self) -> "Reservations[K]":
        """Return the same reservations for placing pods that never run; see `RunningPods.isolated`."""
        snapshots = {level: isolated(each) for level, each in dict(self._snapshots).items()}
        return Reservations(isolated(self.base), self.by_key, snapshots, self._counts)

    def count_on(self, rows: Iterable[int], priority: int) -> int:
        """Return how many pods have room on the nodes in `rows` and come before a new pod of `priority`."""
        names = (self.base.nodes[row].node.name for row in rows)
        return sum(self.by_key[key].priority >= priority for name in names for key in self.keys_by_node.get(name, ()))

    def has_room(self, node: str, pod: RunningPod | None = None) -> bool:
        """Return whether all reserved pods, and `pod`, have their requests on `node`, which is one of `base`."""
        row = self.base.rows[node]
        full = self.all_shown.nodes[row]
        reserved = full.pods[len(self.base.nodes[row].pods) :]
        added = (*reserved, *((pod,) if pod else ()))
        if len(full.pods) + (pod is not None) > full.node.allowed_pods:
            return False
        more = {} if pod is None else pod.requests
        requested = {resource for each in added for resource in each.requests}
        return all(
            full.requested.get(resource, 0) + more.get(resource, 0) <= full.node.allocatable.get(resource, 0)
            for resource in requested
        )

    def _keep_few_snapshots(self) -> None:
        """Delete the oldest result of `before`, but for that with all pods, if there are many."""
        for level in [*self._snapshots]:
            if len(self._snapshots) >= _MOST_SNAPSHOTS and level != self.levels[0]:
                self._snapshots.pop(level, None)

    def without_room_since(self, before: Snapshot) -> list[K]:
        """Return the keys of the pods on nodes that have changed since `before` and do not have their room any more."""
        found: list[K] = []
        for node, keys in self.keys_by_node.items():
            info, row = self.base.nodes[self.base.rows[node]], before.rows.get(node)
            known = None if row is None else before.nodes[row]
            if known is not info and (known is None or known.node != info.node or not self.has_room(node)):
                found += keys
        return found

    def _with_pods(self, snapshot: Snapshot, level: int, nodes: Iterable[str]) -> Snapshot:
        """Return `snapshot` with the pods of `base` and the reserved ones of `level` or more on each of `nodes`."""
        infos = []
        for node in nodes:
            reserved = (self.by_key[key] for key in self.keys_by_node.get(node, ()))
            pods = [each.pod for each in reserved if each.priority >= level]
            infos.append(self.base.nodes[self.base.rows[node]].with_pods(pods))
        return updated(snapshot, infos, self.base.generation)


def _layered(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, pods=snapshot.pods.layered())


def _has_old_classes(snapshot: Snapshot, pods: int) -> bool:
    """Return whether many classes of `snapshot` are those of pods that have lost their room since it was made."""
    return snapshot.pods.classes.own_count > pods + _MOST_OLD_CLASSES


def isolated(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` for placing pods that never run; see `RunningPods.isolated`."""
    return replace(snapshot, pods=snapshot.pods.isolated())


def _changed_nodes(before: Snapshot, after: Snapshot) -> list[str] | None:
    """Return the nodes on which other pods run; None if more has changed, or there are many."""
    if before.rows is not after.rows and before.rows.keys() != after.rows.keys():
        return None
    pairs = [(old, new) for old, new in zip(before.nodes, after.nodes, strict=True) if old is not new]
    if len(pairs) > _MOST_CHANGED or any(old.node != new.node for old, new in pairs):
        return None
    return [new.node.name for _, new in pairs]


def tied_nodes(placement: Placement, snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes that kube-scheduler can pick for the pod; none if there is one, or if the cluster is large."""
    if placement.best_rows is None or len(snapshot.nodes) > MOST_SCORED_NODES:
        return frozenset()
    names = placement.possible_nodes | {snapshot.nodes[row].node.name for row in placement.best_rows.tolist()}
    return names if len(names) > 1 else frozenset()


def with_ties(nodes: frozenset[str], reservations: "Reservations[Any]") -> frozenset[str]:
    """Return `nodes` and those that take their place if pods with room on one of them, or tied with it, get others."""
    ties = {each.tied for each in reservations.by_key.values() if each.tied}
    known: frozenset[str] = frozenset()
    while known != nodes:
        known = nodes
        nodes = nodes.union(*(each for each in ties if not each.isdisjoint(nodes)))
    return nodes


def spread(placement: Placement, snapshot: Snapshot, seed: str) -> Placement:
    """Return `placement` with one of the best nodes, chosen by `seed` alone.

    kube-scheduler picks one of them at random. If each pod was predicted on the first of them, the nodes that the view
    shows as used would differ from those that are.
    """
    rows = placement.best_rows
    if rows is None or len(rows) < 2:
        return placement
    number = int.from_bytes(blake2b(seed.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return replace(placement, node=snapshot.nodes[rows[number % len(rows)]].node.name)
