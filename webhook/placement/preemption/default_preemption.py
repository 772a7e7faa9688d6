"""DefaultPreemption: predict the pods that kube-scheduler evicts for a pod that no node can take.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, Evaluator.Preempt, and
framework/plugins/defaultpreemption/default_preemption.go
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot
from webhook.documents.text import cut
from webhook.kube.deadline import Expired, in_time
from webhook.kube.release import Change
from webhook.placement.dra.feasibility import resource_claim
from webhook.placement.framework.filtering import named_nodes, run_pre_filters
from webhook.placement.framework.fit_error import fit_error
from webhook.placement.framework.interface import Failure
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.plugins import inter_pod_affinity, node_ports, node_volume_limits, pod_topology_spread
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, missing_resource
from webhook.placement.plugins.volume_restrictions import ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.choice import choose, unknown_of_budgets
from webhook.placement.preemption.node_room import NodeRoom
from webhook.placement.preemption.room import MOST_WORK, Room, WorkSpentError
from webhook.placement.preemption.victims import Candidate, Protection, candidates_on
from webhook.placement.profiles.profile import Profile

# Reasons that end when pods of the node end. A request that exceeds what the node offers does not.
_RESOLVABLE = frozenset(
    (
        ERR_REASON_TOO_MANY_PODS,
        node_ports.ERR_REASON,
        ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT,
        node_volume_limits.ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED,
        pod_topology_spread.ERR_REASON_CONSTRAINTS_NOT_MATCH,
        inter_pod_affinity.ERR_REASON_ANTI_AFFINITY,
        inter_pod_affinity.ERR_REASON_EXISTING_ANTI_AFFINITY,
    )
)
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NEVER = "preemption: not eligible due to preemptionPolicy=Never."
_WAITS = "preemption: not eligible due to a terminating pod on the nominated node."
_TOO_MANY = "inter-pod affinity, spread or volumes depend on more pods than are tried"
_LONGEST_SHOWN = 63
_MISLEADING = "kube-scheduler counts pods that are being deleted in two ways for topology spread"
# One of many suggestions must not use up the time of the others.
_MOST_WORK_TO_SUGGEST = MOST_WORK // 6


class Dice(Protocol):
    """Random choices, as `random.Random` makes them."""

    def randrange(self, start: int, /) -> int:
        """Return a number below `start`."""
        ...

    def shuffle(self, x: list[Any], /) -> None:
        """Put the items of `x` into another order."""
        ...


def predict_preemption(profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> PredictedPreemption:
    """Return the prediction of the pods of `snapshot` that kube-scheduler evicts for `pod`, which no node can take.

    `pod` must be normalized for `snapshot`, and `profile` must be a profile of kube-scheduler that preempts.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
    """
    found = _predicted(profile, pod, snapshot, expired)
    if found.evicts or not found.message:
        return found
    before = _of_claims(profile, pod, snapshot)
    return replace(found, message="" if before is None else f"{before}{found.message}")


def _predicted(profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> PredictedPreemption:
    if pod.preemption.is_never:
        return PredictedPreemption(message=_NEVER)
    rows = potential_nodes(profile, pod, snapshot, expired)
    if _waits_for_victims(pod, snapshot, rows):
        return PredictedPreemption(message=_WAITS)
    try:
        return _chosen(profile, pod, snapshot, rows, expired)
    except WorkSpentError:
        return PredictedPreemption(is_exact=False, why=_TOO_MANY)


def _chosen(profile: Profile, pod: PodInfo, snapshot: Snapshot, rows: Mask, expired: Expired) -> PredictedPreemption:
    room, reasons = Room(profile, pod, snapshot, expired, MOST_WORK), Counter[str]()
    if any(map(room.misleads, np.flatnonzero(rows).tolist())):
        return PredictedPreemption(is_exact=False, why=_MISLEADING)
    compared = _compared(profile, int(np.count_nonzero(rows)))
    rooms: dict[str, NodeRoom] = {}
    for node, on_node in _rooms(room, np.flatnonzero(rows).tolist(), reasons):
        if len(rooms) == compared:
            why = "; ".join([f"kube-scheduler compares {compared}, from a random one", *unknown_of_budgets(snapshot)])
            most = int(snapshot.load.pods[rows].max())
            return PredictedPreemption(candidates=compared + 1, least=1, most=most, is_exact=False, why=why)
        rooms[node] = on_node
    if not rooms:
        reasons[_NOT_HELPFUL] += len(snapshot.nodes) - int(np.count_nonzero(rows))
        counted = {reason: count for reason, count in reasons.items() if count}
        return PredictedPreemption(message=f"preemption: {fit_error(len(snapshot.nodes), counted)}")
    found = _candidates(snapshot, rooms, expired)
    return choose(profile, pod, snapshot, found) if found else PredictedPreemption()


def not_predicted_for(group: PodGroup) -> PredictedPreemption:
    """Return an unknown prediction for a pod of `group`, a native PodGroup of kube-scheduler.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/podgrouppreemption.go
    """
    shown = cut(group.name, _LONGEST_SHOWN)
    where = f", in a domain of {cut(group.topology_key, _LONGEST_SHOWN)} of its choice" if group.topology_key else ""
    why = f"kube-scheduler evicts pods for all pods of PodGroup {shown} at once{where}"
    return PredictedPreemption(is_exact=False, why=why)


def best_on(
    profile: Profile, pod: PodInfo, snapshot: Snapshot, rows: Iterable[int], expired: Expired
) -> Candidate | None:
    """Return the candidate that kube-scheduler would choose among the nodes in `rows`, or None if there is none.

    Of equal candidates, it is the first. The result is also None if the search takes too much work.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
    """
    if pod.preemption.is_never:
        return None
    room = Room(profile, pod, snapshot, expired, _MOST_WORK_TO_SUGGEST)
    try:
        found = _candidates(snapshot, dict(_rooms(room, rows, Counter())), expired)
    except WorkSpentError:
        return None
    return min((outcomes[0] for outcomes in found), key=lambda each: each.cost, default=None)


def chosen_by(dice: Dice, profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> Candidate | None:
    """Return one candidate that kube-scheduler may choose for `pod`, which no node can take, or None if there is none.

    `dice` makes the random choices: the node at which the search for candidates starts, which of equally important pods
    stay, and which of equal nodes is chosen.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
    """
    if pod.preemption.is_never:
        return None
    potential = potential_nodes(profile, pod, snapshot, expired)
    if _waits_for_victims(pod, snapshot, potential):
        return None
    rows, protection = np.flatnonzero(potential).tolist(), Protection(snapshot.disruption_budgets or ())
    first, found = dice.randrange(len(rows)) if rows else 0, []
    room = Room(profile, pod, snapshot, expired, sys.maxsize)
    for node, on_node in _rooms(room, rows[first:] + rows[:first], Counter()):
        dice.shuffle(on_node.lower)
        found += candidates_on(node, on_node, protection, expired)[:1]
        if len(found) >= _compared(profile, len(rows)) and not all(each.violates for each in found):
            break
    dice.shuffle(found)
    return min(found, key=lambda each: each.cost, default=None)


def potential_nodes(profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> Mask:
    """Return the nodes whose first filter that rejects `pod` can pass after an eviction there.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
    """
    found = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    before = run_pre_filters(profile.pre_filters, pod, snapshot, ignore_transient=False)
    if before.reason:
        return found
    left = np.ones_like(found) if before.node_names is None else named_nodes(before.node_names, snapshot)
    if pod.nomination.node_name:
        # kube-scheduler evaluates the nominated node whatever the pre-filters name.
        left = left | named_nodes(frozenset((pod.nomination.node_name,)), snapshot)
    requests = dict(pod.requests)

    def reject(failures: Iterable[Failure]) -> None:
        nonlocal left
        rejected, unresolvable = np.zeros_like(found), np.zeros_like(found)
        for reason, mask in failures:
            rejected |= mask & left
            resource = missing_resource(reason)
            if resource is not None:
                unresolvable |= mask & (snapshot.allocatable(resource) < min(requests[resource], LARGEST_AMOUNT))
            elif reason not in _RESOLVABLE and not reason.endswith(node_volume_limits.NOT_INSTALLED):
                unresolvable |= mask
        found[rejected & ~unresolvable] = True
        left = left & ~rejected

    with_nominated = nodes_with_nominated_pods(pod, snapshot, profile.scheduler_names, expired)
    for plugin in in_time(profile.filters if with_nominated else (), expired):
        reject(with_nominated.failures(plugin, left) if with_nominated else ())
    for plugin in in_time(profile.filters, expired):
        reject(plugin.filter(pod, snapshot, expired))
    return found


def _of_claims(profile: Profile, pod: PodInfo, snapshot: Snapshot) -> str | None:
    """Return the text that DynamicResources writes before the message of preemption, or None if it is not certain.

    It is not certain if DynamicResources may first release devices of the pod's own claims. This depends on the pods
    for which the claims are reserved, which are not read.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, PostFilter
    """
    if not any(isinstance(each, DynamicResources) for each in profile.filters):
        return ""
    claims = [resource_claim(use, snapshot.devices) for use in pod.device_claims]
    has_devices = any(claim is not None and claim.allocation is not None for claim in claims)
    if has_devices or pod.stored in snapshot.devices.extended_claims:
        return None
    if snapshot.release.has(Change.NO_CLAIM_IS_NO_REASON):
        return ""
    return "still not schedulable, " if claims or pod.by_container else "no new claims to deallocate, "


def _waits_for_victims(pod: PodInfo, snapshot: Snapshot, potential: Mask) -> bool:
    """Return whether pods that were evicted for `pod` are still terminating on its nominated node.

    Source: default_preemption.go, PodEligibleToPreemptOthers
    """
    row = snapshot.rows.get(pod.nomination.node_name) if pod.nomination.node_name else None
    if row is None or not potential[row]:
        return False
    priority = pod.preemption.priority or 0
    return any(each.is_preempted and each.priority < priority for each in snapshot.nodes[row].pods)


def _rooms(room: Room, rows: Iterable[int], reasons: Counter[str]) -> Iterator[tuple[str, NodeRoom]]:
    """Yield the nodes in `rows` that can take the pod without pods of lower priority."""
    nodes, priority = room.snapshot.nodes, room.pod.preemption.priority or 0
    for row in in_time(rows, room.expired):
        if nodes[row].lowest_priority >= priority:
            reasons[_NO_VICTIMS] += 1
            continue
        on_node = NodeRoom(room, row)
        if rejected := on_node.rejections():
            reasons.update(rejected)
        else:
            yield nodes[row].node.name, on_node


def _compared(profile: Profile, potential: int) -> int:
    """Return the number of candidates after which kube-scheduler ends its search among `potential` nodes."""
    args = profile.args
    return max(potential * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)


def _candidates(snapshot: Snapshot, rooms: Mapping[str, NodeRoom], expired: Expired) -> list[list[Candidate]]:
    """Return the candidates of each node: the sets of pods that kube-scheduler may evict there."""
    protection = Protection(snapshot.disruption_budgets or ())
    found = (candidates_on(node, room, protection, expired) for node, room in in_time([*rooms.items()], expired))
    return [outcomes for outcomes in found if outcomes]
