"""Find the pending pods that would start without the held pods. They are placed in order, as by kube-scheduler."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from placement_planner.capacity.moves import without_pods
from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Raw, full_name
from placement_reclaim.held import Held
from webhook.cluster.pods.nominated_pods import NO_NOMINATED_PODS
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import place_and_assume, read_waiting
from webhook.policy.spec.schedulers import SchedulerSettings

# Pods beyond are the last in the queue. A pod takes about a millisecond on 5,000 nodes.
MOST_PENDING = 2000
Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Effects:
    """The gangs and the pods without a gang that wait for cards, by name, and those of them that start.

    `is_complete` is false if there are more pending pods than are placed.
    """

    gangs: tuple[str, ...]
    pods: tuple[str, ...]
    starting: tuple[str, ...]
    is_complete: bool = True

    @property
    def starting_gangs(self) -> int:
        """Return the number of gangs that start."""
        return len({*self.gangs} & {*self.starting})


class _Group(NamedTuple):
    """A single waiting pod, or the waiting pods of a gang that starts with `least` pods, running ones included."""

    name: str
    pods: list[PendingPod]
    gang: Name | None
    least: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pods with cards in the cluster of `snapshot`: `pods` wait for a node, and `bound` have one.

    A gang starts if at least its minimum number of pods has room or runs. Otherwise its pods take no room.
    """

    snapshot: Snapshot
    pods: Mapping[Name, Raw]
    bound: Mapping[Name, Raw]
    gang_of: GangOf
    scorer: Scorer
    schedulers: Mapping[str, SchedulerSettings]

    def effects(self, held: Sequence[Held]) -> Effects:
        """Return the gangs and pods that start without the pods of `held`, but not with them."""
        waiting = [
            replace(pod, is_waiting=True, nominated=None)
            for key, pod in self.snapshot.pending.items()
            if key in self.pods and _may_start(self.pods[key])
        ]
        waiting.sort(key=lambda each: (-each.priority, each.created))
        groups = self._groups(waiting[:MOST_PENDING])
        # A nominated pod has its room when it is placed, like the others.
        snapshot = replace(self.snapshot, nominated=NO_NOMINATED_PODS)
        before = self._starting(snapshot, groups, ())
        gone = {full_name(pod) for each in held for pod in each.pods}
        after = self._starting(_without(snapshot, held), groups, gone)
        return Effects(
            tuple(each.name for each in groups if each.gang and each.name not in before),
            tuple(each.name for each in groups if not each.gang and each.name not in before),
            tuple(name for name in after if name not in before),
            len(waiting) <= MOST_PENDING,
        )

    def _groups(self, waiting: Iterable[PendingPod]) -> Sequence[_Group]:
        """Return the gangs and the pods without a gang, in the order of the queue."""
        groups: dict[str, _Group] = {}
        for pod in waiting:
            gang, least = self.gang_of(self.pods[pod.key]) or (None, 1)
            name = "/".join(gang or pod.key)
            # A gang and a pod can have one name.
            groups.setdefault(f"{gang} {name}", _Group(name, [], gang, least)).pods.append(pod)
        return tuple(groups.values())

    def _starting(self, snapshot: Snapshot, groups: Iterable[_Group], gone: Collection[Name]) -> dict[str, None]:
        """Return the names of the groups that start on `snapshot`, in the order of the queue, if `gone` do not run."""
        bound = (gang[0] for key, pod in self.bound.items() if key not in gone and (gang := self.gang_of(pod)))
        running, assumed = Counter(bound), AssumedPods[PodKey](snapshot)
        starting: dict[str, None] = {}
        for group in groups:
            placed = [pod.key for pod in group.pods if self._has_room(pod, assumed)]
            if len(placed) + (running[group.gang] if group.gang else 0) < group.least:
                assumed.forget(placed)
            elif placed:
                starting[group.name] = None
        return starting

    def _has_room(self, pod: PendingPod, assumed: AssumedPods[PodKey]) -> bool:
        """Return whether a node has room for `pod` in addition to `assumed`. If so, add `pod` to `assumed`."""
        waiting = read_waiting(pod)
        if waiting is None or is_absent(waiting.running.rare.scheduler, assumed.base, self.schedulers):
            return False
        return place_and_assume(self.scorer, pod.key, waiting, assumed, str(pod.key))[0].verdict == "Feasible"


def _may_start(pod: Raw) -> bool:
    """Return whether `pod` only waits for a node: it has no scheduling gates and is not being deleted."""
    return not field(pod, "spec", "schedulingGates") and not field(pod, "metadata", "deletionTimestamp")


def _without(snapshot: Snapshot, held: Iterable[Held]) -> Snapshot:
    by_node: dict[str, set[Name]] = {}
    for each in held:
        for pod in each.pods:
            by_node.setdefault(str(field(pod, "spec", "nodeName")), set()).add(full_name(pod))
    return without_pods(snapshot, by_node)
