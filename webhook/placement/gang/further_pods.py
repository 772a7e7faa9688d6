"""Count the further pods of a gang that fit: all nodes at once, or one pod after the other."""

from typing import NamedTuple

import numpy as np

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.framework.result import Placement
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.replicas.independent_nodes import are_nodes_independent, fill
from webhook.placement.replicas.replicas import FillingCluster
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.pending_placement import WaitingPod

MOST_STEPS = 100
"""The number of pods that are placed one after the other, where pods on one node decide about other nodes."""

# Filling so many takes about 20 ms.
_NODES_AT_ONCE = 250
_SHARED_MODES = frozenset(("ReadWriteMany", "ReadOnlyMany"))


class Further(NamedTuple):
    """The number of further pods of a gang that fit. `stopped` is the placement of the first pod that does not fit.

    If `is_complete` is false, `number` is a lower bound.
    """

    number: int
    stopped: Placement | None
    is_complete: bool = True


def further_pods(
    scheduler: Scheduler, pod: WaitingPod, own: Placement, snapshot: Snapshot, left: int, expired: Expired
) -> Further:
    """Return the number of `left` further pods like `pod`, whose first has the placement `own`, that fit."""
    if own.verdict != "Feasible":
        return Further(0, own)
    if left > 1 and not _shares_claims(pod.signature.info, snapshot):
        # The others have claims of their own, which are not known.
        return Further(1, None, is_complete=False)
    if not are_nodes_independent(scheduler, pod.signature, snapshot):
        return _one_by_one(scheduler, pod, own, snapshot, left, expired)
    rows = scheduler.feasible_rows(pod.signature, snapshot, expired)
    number = len(rows) if len(rows) >= left else 0
    for start in range(0, len(rows), _NODES_AT_ONCE):
        if number >= left:
            break
        among = np.zeros(len(snapshot.nodes), dtype=np.bool_)
        among[rows[start : start + _NODES_AT_ONCE]] = True
        filled = fill(scheduler, pod.signature, pod.running, snapshot, most=left, among=among, expired=expired)
        number, snapshot = number + int(filled.copies.sum()), filled.snapshot
    if number >= left:
        return Further(left, None)
    return Further(number, scheduler.answer(pod.signature, snapshot, expired))


def _one_by_one(
    scheduler: Scheduler, pod: WaitingPod, own: Placement, snapshot: Snapshot, left: int, expired: Expired
) -> Further:
    cluster, signature = FillingCluster(snapshot), pod.signature
    placement = own
    for number in range(min(left, MOST_STEPS)):
        if placement.verdict != "Feasible" or placement.node is None:
            return Further(number, placement, placement.verdict != "Unknown")
        if number + 1 == left:
            return Further(left, None)
        cluster.add(signature, pod.running, placement.node)
        if not cluster.is_known_for(signature):
            return Further(number + 1, None, is_complete=False)
        placement = scheduler.answer(signature, cluster.snapshot, expired)
        if not placement.is_final:
            raise DeadlineNearError(placement.message)
    return Further(MOST_STEPS, None, is_complete=False)


def _shares_claims(info: PodInfo, snapshot: Snapshot) -> bool:
    """Return whether all pods of a gang can use the claims of one pod, such as a data set that many nodes mount."""
    claims = snapshot.storage.claims or {}
    found = [claims.get((info.volumes.namespace, use.name)) for use in info.volumes.claims]
    return all(each is not None and each.is_bound and _SHARED_MODES & set(each.access_modes) for each in found)
