"""Find the pending pods that would start without the held pods. They are placed in order, as by kube-scheduler."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
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


_Key = tuple[bool, str]
"""The name of a gang or of a pod, after true for a gang: both can have the same name."""


def effects_of(held: Sequence[Held], objects: Objects, scorer: Scorer) -> Effects:
    """Return the gangs and pods with cards that start without the pods of `held`, but not with them."""
    # A nominated pod has its room when it is placed, like the others.
    snapshot, pods = replace(objects.snapshot, nominated=NO_NOMINATED_PODS), objects.pods
    waiting = [pod for key, pod in snapshot.pending.items() if key in pods and _may_start(pods[key], objects)]
    waiting.sort(key=lambda each: (-each.priority, each.created))
    found = defaultdict[_Key, list[PendingPod]](list)
    for pod in waiting[:MOST_PENDING]:
        gang = objects.gang_of(pods[pod.key])
        found[gang is not None, "/".join(gang[0] if gang else pod.key)].append(pod)
    groups = {key: some for key, some in found.items() if any(objects.wants_cards(pods[each.key]) for each in some)}
    gone = {full_name(pod) for each in held for pod in each.pods}
    nodes = {node for each in held if each.pods for node in each.nodes}
    before = _starting(groups, snapshot, (), objects, scorer)
    after = _starting(groups, without_pods(snapshot, dict.fromkeys(nodes, gone)), gone, objects, scorer)
    held_up = [key for key in groups if key not in before]
    return Effects(
        tuple(name for is_gang, name in held_up if is_gang),
        tuple(name for is_gang, name in held_up if not is_gang),
        tuple(name for is_gang, name in after if (is_gang, name) not in before),
        len(waiting) <= MOST_PENDING,
    )


def _may_start(pod: Raw, objects: Objects) -> bool:
    """Return whether `pod` only waits for a node, and it or its gang can need cards."""
    is_kept = field(pod, "spec", "schedulingGates") or field(pod, "metadata", "deletionTimestamp")
    return not is_kept and (objects.wants_cards(pod) or objects.gang_of(pod) is not None)


def _starting(
    groups: Mapping[_Key, Sequence[PendingPod]],
    snapshot: Snapshot,
    gone: Collection[Name],
    objects: Objects,
    scorer: Scorer,
) -> dict[_Key, None]:
    """Return the groups that start on `snapshot`, in the order of the queue, if `gone` do not run.

    A gang starts if at least its minimum number of pods has room or runs. Otherwise its pods take no room.
    """
    bound = (pod for key, pod in objects.pods.items() if field(pod, "spec", "nodeName") and key not in gone)
    running = Counter[_Key]((True, "/".join(gang[0])) for pod in bound if (gang := objects.gang_of(pod)))
    assumed, starting = AssumedPods[PodKey](snapshot), dict[_Key, None]()

    def has_room(pod: PendingPod) -> bool:
        waiting = read_waiting(pod)
        if waiting is None or is_absent(waiting.running.rare.scheduler, snapshot, objects.policy.spec.schedulers):
            return False
        return place_and_assume(scorer, pod.key, waiting, assumed, str(pod.key))[0].verdict == "Feasible"

    for key, pods in groups.items():
        placed = [pod.key for pod in pods if has_room(pod)]
        _, least = objects.gang_of(objects.pods[pods[0].key]) or (None, 1)
        if len(placed) + running[key] < least:
            assumed.forget(placed)
        elif placed:
            starting[key] = None
    return starting
