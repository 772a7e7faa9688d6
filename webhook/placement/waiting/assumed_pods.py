"""Pods that are assumed on a node: admitted or pending, but not bound yet.

kube-scheduler takes pending pods from its queue by priority, then by time. So the pods that wait before a pod take room
on the nodes first. The node of each waiting pod is predicted, and the pod is assumed there until its node is known.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort/priority_sort.go, backend/cache/cache.go, AssumePod
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.placement.framework.result import Placement
from webhook.placement.pod.preemption import Preemption

K = TypeVar("K", bound=Hashable)

# Each snapshot of a priority is kept current.
_MOST_SNAPSHOTS = 16
_MOST_PRIORITIES = 64
# Of the nodes that a pod fits, kube-scheduler scores so many in any case, and of more it can score a part.
# Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, numFeasibleNodesToFind
MOST_SCORED_NODES = 100


@dataclass(slots=True)
class AssumedPod:
    """The `pod`, assumed on the node `pod.node_name`. Pods of a lower `priority` come after it.

    `tied` are the nodes that kube-scheduler can pick, if there are several. It is empty if `is_sampled` is true: then
    kube-scheduler may score only a part of the nodes that the pod fits, so its pick cannot be predicted.
    """

    pod: RunningPod
    priority: int
    tied: frozenset[str] = frozenset()
    is_sampled: bool = False


class AssumedPods(Generic[K]):
    """The assumed pods on the nodes of `base`, by a key for each pod. Not thread-safe.

    `before` returns a snapshot that shows them as running. The next `assume` or `follow` changes this snapshot in
    place, so use a `copy` to keep it longer or in another thread. `ties` counts the pods by `AssumedPod.tied`.
    """

    __slots__ = ("_counts", "_keys_on", "_priorities", "_sampled", "_shown", "base", "by_key", "ties")

    def __init__(self, base: Snapshot, by_key: Mapping[K, AssumedPod] | None = None) -> None:
        self.base = base
        self.by_key: dict[K, AssumedPod] = {}
        # By the lowest priority that is shown.
        self._shown: dict[int, WorkingSnapshot] = {}
        self._keys_on: dict[str, dict[K, None]] = {}
        self._counts: Counter[int] = Counter()
        self._priorities: dict[Preemption, int] = {}
        self._sampled = 0
        self.ties: Counter[frozenset[str]] = Counter()
        for key, assumed in (by_key or {}).items():
            self._put(key, assumed)

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def is_mostly_sampled(self) -> bool:
        """Return whether the nodes of most of the pods cannot be predicted; see `AssumedPod`."""
        return 2 * self._sampled > len(self.by_key)

    def priority_of(self, preemption: Preemption) -> int:
        """Return the priority of a new pod with `preemption`. Its class is looked up in `base`."""
        priority = self._priorities.get(preemption)
        if priority is None:
            if len(self._priorities) >= _MOST_PRIORITIES:
                self._priorities.clear()
            priority = self._priorities[preemption] = preemption.normalized_for(self.base).priority or 0
        return priority

    def before_pod(self, preemption: Preemption) -> Snapshot:
        """Return `base` with the assumed pods that come before a new pod with `preemption`."""
        return self.before(self.priority_of(preemption))

    def before(self, priority: int) -> Snapshot:
        """Return `base` with the assumed pods that come before a new pod of `priority`, shown as running."""
        shown = self._shown.get(priority)
        if shown is None:
            for oldest in [*self._shown][: max(0, len(self._shown) - _MOST_SNAPSHOTS + 1)]:
                self._drop(oldest)
            pods = (each.pod for each in self.by_key.values() if each.priority >= priority)
            shown = self._shown[priority] = WorkingSnapshot(self.base, pods)
        return shown.snapshot

    @property
    def all_shown(self) -> Snapshot:
        """Return `base` with all assumed pods, shown as running."""
        return self.before(min(self._counts, default=0))

    def count_before(self, priority: int) -> int:
        """Return the number of assumed pods that come before a new pod of `priority`."""
        return sum([count for level, count in self._counts.items() if level >= priority])

    def keys_on(self, node: str) -> Collection[K]:
        """Return the keys of the pods that are assumed on `node`."""
        return self._keys_on.get(node, {}).keys()

    def after_on_node(self, node: str, priority: int) -> tuple[K, ...]:
        """Return the keys of the pods on `node` that have a lower priority than `priority`."""
        if min(self._counts, default=priority) >= priority:
            return ()
        return tuple(key for key in self.keys_on(node) if self.by_key[key].priority < priority)

    def assume(self, key: K, assumed: AssumedPod) -> None:
        """Assume a pod on a node of `base`. It must not be assumed yet."""
        if key in self.by_key:
            self.forget((key,))
        self._put(key, assumed)
        for lowest, shown in [*self._shown.items()]:
            if lowest <= assumed.priority:
                shown.add(assumed.pod)
                if shown.is_worn:
                    self._drop(lowest)

    def forget(self, keys: Iterable[K]) -> None:
        """Remove the assumed pods with these `keys`. Other keys are ignored."""
        for key in keys:
            if (assumed := self.by_key.get(key)) is not None:
                self._pop(key)
                for lowest, shown in self._shown.items():
                    if lowest <= assumed.priority:
                        shown.remove(assumed.pod)

    def follow(self, base: Snapshot, gone: Iterable[K] = ()) -> list[K]:
        """Change to `base`, a later state of the cluster, and remove the pods `gone`, which are bound or do not wait.

        If `base` shows such a pod on the node where it was assumed, nothing else changes. Return the keys of the pods
        whose node is gone, which are also removed.
        """
        if base is self.base:
            self.forget(gone)
            return []
        changed = {self._pop(key) for key in gone if key in self.by_key}
        lost: list[K] = []
        if base.rows is not self.base.rows:
            lost = [key for key, each in self.by_key.items() if each.pod.node_name not in base.rows]
        changed.update(map(self._pop, lost))
        if base.priority_classes is not self.base.priority_classes:
            self._priorities.clear()
        self.base = base
        for lowest, shown in [*self._shown.items()]:
            is_followed = shown.follow(base, partial(self._pods_on, lowest), changed & base.rows.keys())
            if not is_followed or shown.is_worn:
                self._drop(lowest)
        return lost

    def copy(self) -> "AssumedPods[K]":
        """Return an independent copy."""
        return AssumedPods(self.base, self.by_key)

    def without(self, keys: Iterable[K]) -> "AssumedPods[K]":
        """Return a copy without the pods of `keys`."""
        gone = {*keys}
        return AssumedPods(self.base, {key: each for key, each in self.by_key.items() if key not in gone})

    def on(self, base: Snapshot) -> "AssumedPods[K]":
        """Return a copy on another state of the cluster, without the pods whose nodes are gone."""
        return AssumedPods(base, {key: each for key, each in self.by_key.items() if each.pod.node_name in base.rows})

    def isolated(self) -> "AssumedPods[K]":
        """Return a copy for placing pods that never run; see `RunningPods.isolated`."""
        return AssumedPods(isolated(self.base), self.by_key)

    def count_on(self, rows: Iterable[int], priority: int) -> int:
        """Return the number of pods on the nodes in `rows` that come before a new pod of `priority`."""
        names = (self.base.nodes[row].node.name for row in rows)
        return sum(self.by_key[key].priority >= priority for name in names for key in self.keys_on(name))

    def has_room(self, node: str, pod: RunningPod | None = None) -> bool:
        """Return whether `base` has `node`, and the node has room for all pods assumed on it and for `pod`."""
        row = self.base.rows.get(node)
        if row is None:
            return False
        full, asked = self.all_shown.nodes[row], {} if pod is None else pod.requests
        if len(full.pods) + (pod is not None) > full.node.allowed_pods:
            return False
        used, offered = full.requested, full.node.allocatable
        names = used.keys() | asked.keys()
        short = [name for name in names if used.get(name, 0) + asked.get(name, 0) > offered.get(name, 0)]
        if not short:
            return True
        counted = [asked, *(self.by_key[key].pod.requests for key in self.keys_on(node))]
        return not any(name in each for name in short for each in counted)

    def without_room_since(self, before: Snapshot) -> list[K]:
        """Return the keys of the pods whose nodes have changed since `before` and no longer have room for them."""
        found: list[K] = []
        base, nodes = self.base, [*self._keys_on]
        if base.rows is before.rows:
            changed = (base.nodes[row].node.name for row in base.changed_rows(before))
            nodes = [node for node in changed if node in self._keys_on]
        for node in nodes:
            info, row = base.nodes[base.rows[node]], before.rows.get(node)
            known = None if row is None else before.nodes[row]
            if known is not info and (known is None or known.node != info.node or not self.has_room(node)):
                found += self._keys_on[node]
        return found

    def _pods_on(self, lowest: int, node: str) -> list[RunningPod]:
        found = (self.by_key[key] for key in self.keys_on(node))
        return [each.pod for each in found if each.priority >= lowest]

    def _drop(self, lowest: int) -> None:
        # The results by this log are never used again, but can stay in caches for a while.
        self._shown.pop(lowest).snapshot.log.clear()

    def _put(self, key: K, assumed: AssumedPod) -> None:
        self.by_key[key] = assumed
        self._keys_on.setdefault(assumed.pod.node_name, {})[key] = None
        self._counts[assumed.priority] += 1
        self._sampled += assumed.is_sampled
        self.ties[assumed.tied] += 1

    def _pop(self, key: K) -> str:
        """Remove a pod and return its node. The snapshots still show the pod."""
        assumed = self.by_key.pop(key)
        node = assumed.pod.node_name
        keys = self._keys_on[node]
        del keys[key]
        if not keys:
            del self._keys_on[node]
        self._sampled -= assumed.is_sampled
        if left := self.ties[assumed.tied] - 1:
            self.ties[assumed.tied] = left
        else:
            del self.ties[assumed.tied]
        self._counts[assumed.priority] -= 1
        if not self._counts[assumed.priority]:
            del self._counts[assumed.priority]
        return node


def isolated(snapshot: Snapshot) -> Snapshot:
    """Return `snapshot` for placing pods that never run; see `RunningPods.isolated`."""
    return replace(snapshot, pods=snapshot.pods.isolated())


def tied_nodes(placement: Placement, snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes among which kube-scheduler picks, or none if there is one or it may score only a part."""
    rows = placement.best_rows
    if rows is None or placement.feasible > MOST_SCORED_NODES:
        return frozenset()
    if snapshot.rows.get(placement.node or "") not in rows or rows[-1] >= len(snapshot.nodes):
        # The nodes have changed since the pod was placed, so the rows are those of others.
        return frozenset()
    names = placement.possible_nodes | {snapshot.nodes[row].node.name for row in rows.tolist()}
    return names if len(names) > 1 else frozenset()


def with_ties(nodes: frozenset[str], assumed: AssumedPods[Any]) -> frozenset[str]:
    """Return `nodes`, and the nodes that can become best instead if pods on a tied node get other nodes."""
    apart = {*assumed.ties}
    while joined := {each for each in apart if not each.isdisjoint(nodes)}:
        nodes = nodes.union(*joined)
        apart -= joined
    return nodes


def chosen_node(placement: Placement, snapshot: Snapshot, seed: str) -> str | None:
    """Return one of the best nodes of `placement`. The choice depends only on `seed`.

    kube-scheduler picks one of the best nodes at random. If every pod were predicted on the first one, the predicted
    load would differ from the real one.
    """
    rows = placement.best_rows
    if rows is None or len(rows) < 2:
        return placement.node
    number = int.from_bytes(blake2b(seed.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return snapshot.nodes[int(rows[number % len(rows)])].node.name
