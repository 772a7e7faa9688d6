"""Find the pending pods that would start without the held pods. They are placed in order, as by kube-scheduler."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from placement_planner.capacity.moves import without_pods
from placement_reclaim.cluster import Name, Objects, Raw, full_name
from placement_reclaim.held import Held
from webhook.cluster.pods.nominated_pods import NO_NOMINATED_PODS
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import place_and_assume, read_waiting

# Pods beyond are the last in the queue. A pod takes about a millisecond on 5,000 nodes.
MOST_PENDING = 2000


class Effects(NamedTuple):
    """The gangs and the pods without a gang that wait for cards, by name, and those of them that start.

    `is_complete` is false if there are more pending pods than are placed.
    """

    gangs: tuple[str, ...]
    pods: tuple[str, ...]
    starting: tuple[str, ...]
    is_complete: bool = True


class _Group(NamedTuple):
    """A single waiting pod, or the waiting pods of a gang that starts with `least` pods, running ones included."""

    name: str
    pods: list[PendingPod]
    gang: Name | None
    least: int


def effects_of(held: Sequence[Held], objects: Objects, scorer: Scorer) -> Effects:
    """Return the gangs and pods with cards that start without the pods of `held`, but not with them.

    A gang starts if at least its minimum number of pods has room or runs. Otherwise its pods take no room.
    """
    # A nominated pod has its room when it is placed, like the others.
    snapshot = replace(objects.snapshot, nominated=NO_NOMINATED_PODS)
    waiting = [
        replace(pod, is_waiting=True, nominated=None)
        for key, pod in snapshot.pending.items()
        if key in objects.pending and _may_start(objects.pending[key])
    ]
    waiting.sort(key=lambda each: (-each.priority, each.created))
    groups = _groups(waiting[:MOST_PENDING], objects)
    gone = {full_name(pod): str(field(pod, "spec", "nodeName")) for each in held for pod in each.pods}
    by_node = defaultdict[str, set[Name]](set)
    for key, node in gone.items():
        by_node[node].add(key)
    before = _starting(groups, snapshot, (), objects, scorer)
    after = _starting(groups, without_pods(snapshot, by_node), gone, objects, scorer)
    held_up = [each for each in groups if each.name not in before]
    return Effects(
        tuple(each.name for each in held_up if each.gang),
        tuple(each.name for each in held_up if not each.gang),
        tuple(name for name in after if name not in before),
        len(waiting) <= MOST_PENDING,
    )


def _may_start(pod: Raw) -> bool:
    """Return whether `pod` only waits for a node: it has no scheduling gates and is not being deleted."""
    return not field(pod, "spec", "schedulingGates") and not field(pod, "metadata", "deletionTimestamp")


def _groups(waiting: Sequence[PendingPod], objects: Objects) -> Sequence[_Group]:
    """Return the gangs and the pods without a gang, in the order of the queue."""
    groups: dict[str, _Group] = {}
    for pod in waiting:
        gang, least = objects.gang_of(objects.pending[pod.key]) or (None, 1)
        name = "/".join(gang or pod.key)
        # A gang and a pod can have one name.
        groups.setdefault(f"{gang} {name}", _Group(name, [], gang, least)).pods.append(pod)
    return tuple(groups.values())


def _starting(
    groups: Sequence[_Group], snapshot: Snapshot, gone: Collection[Name], objects: Objects, scorer: Scorer
) -> dict[str, None]:
    """Return the names of the groups that start on `snapshot`, in the order of the queue, if `gone` do not run."""
    bound = (gang[0] for key, pod in objects.pods.items() if key not in gone and (gang := objects.gang_of(pod)))
    running, assumed = Counter(bound), AssumedPods[PodKey](snapshot)

    def has_room(pod: PendingPod) -> bool:
        waiting = read_waiting(pod)
        if waiting is None or is_absent(waiting.running.rare.scheduler, snapshot, objects.policy.spec.schedulers):
            return False
        return place_and_assume(scorer, pod.key, waiting, assumed, str(pod.key))[0].verdict == "Feasible"

    starting: dict[str, None] = {}
    for group in groups:
        placed = [pod.key for pod in group.pods if has_room(pod)]
        if len(placed) + (running[group.gang] if group.gang else 0) < group.least:
            assumed.forget(placed)
        elif placed:
            starting[group.name] = None
    return starting
