"""DefaultPreemption: which pods kube-scheduler evicts for a pod that no node can take.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, Evaluator.Preempt, and
framework/plugins/defaultpreemption/default_preemption.go
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.release import Change
from webhook.placement.framework.filtering import named_nodes, run_pre_filters
from webhook.placement.framework.interface import Failure
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import fit_error
from webhook.placement.plugins import inter_pod_affinity, node_ports, node_volume_limits, pod_topology_spread
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, missing_resource
from webhook.placement.plugins.volume_restrictions import ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.room import NodeRoom, Room
from webhook.placement.preemption.victims import Candidate, candidates_on, key_of
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
_MOST_NAMES = 5


class Dice(Protocol):
    """Random choices, as `random.Random` makes them."""

    def randrange(self, start: int, /) -> int:
        """Return a number below `start`."""
        ...

    def shuffle(self, x: list[Any], /) -> None:
        """Put the items of `x` into another order."""
        ...


def predict_preemption(profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> PredictedPreemption:
    """Return which pods of `snapshot` kube-scheduler evicts for `pod`, which no node can take.

    `pod` is normalized for `snapshot`, and `profile` is one of kube-scheduler that preempts.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
        DeadlineNearError: `expired()` holds.
    """
    if pod.preemption.is_never:
        return PredictedPreemption(message=_NEVER)
    rows = potential_nodes(profile, pod, snapshot, expired)
    if _waits_for_victims(pod, snapshot, rows):
        return PredictedPreemption(message=_WAITS)
    reasons: Counter[str] = Counter()
    rooms = dict(_rooms(profile, pod, snapshot, np.flatnonzero(rows).tolist(), reasons, expired))
    if not rooms:
        reasons[_NOT_HELPFUL] += len(snapshot.nodes) - int(np.count_nonzero(rows))
        counted = {reason: count for reason, count in reasons.items() if count}
        return PredictedPreemption(message=f"preemption: {fit_error(len(snapshot.nodes), counted)}")
    compared = _compared(profile, int(np.count_nonzero(rows)))
    if len(rooms) > compared:
        note = f"kube-scheduler compares {compared} of {len(rooms)} nodes, from a random one"
        why, most = "; ".join([note, *_notes(snapshot)]), max(len(each.lower) for each in rooms.values())
        return PredictedPreemption(candidates=len(rooms), least=1, most=most, is_exact=False, why=why)
    return _chosen(profile, pod, snapshot, _candidates(snapshot, rooms, expired))


def best_on(
    profile: Profile, pod: PodInfo, snapshot: Snapshot, rows: Iterable[int], expired: Expired
) -> Candidate | None:
    """Return what kube-scheduler would evict if it had to choose one of the nodes in `rows`, or None.

    Of equal choices, it is the first.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
        DeadlineNearError: `expired()` holds.
    """
    if pod.preemption.is_never:
        return None
    found = _candidates(snapshot, dict(_rooms(profile, pod, snapshot, rows, Counter(), expired)), expired)
    return min((outcomes[0] for outcomes in found), key=lambda each: each.cost, default=None)


def chosen_by(dice: Dice, profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> Candidate | None:
    """Return one of the choices that kube-scheduler may make for `pod`, which no node can take, or None if it has none.

    `dice` decides what nothing else decides: the node from which on it looks for enough candidates, which of equally
    important pods stay, and which of equal nodes it chooses.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
        DeadlineNearError: `expired()` holds.
    """
    if pod.preemption.is_never:
        return None
    potential = potential_nodes(profile, pod, snapshot, expired)
    if _waits_for_victims(pod, snapshot, potential):
        return None
    rows, budgets = np.flatnonzero(potential).tolist(), snapshot.disruption_budgets or ()
    first, found = dice.randrange(len(rows)) if rows else 0, []
    for node, room in _rooms(profile, pod, snapshot, rows[first:] + rows[:first], Counter(), expired):
        dice.shuffle(room.lower)
        found.append(candidates_on(node, room, budgets, expired)[0])
        if len(found) >= _compared(profile, len(rows)) and not all(each.violates for each in found):
            break
    dice.shuffle(found)
    return min(found, key=lambda each: each.cost, default=None)


def potential_nodes(profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that reject `pod` for a reason that can end with pods of the node.

    The first filter that rejects a node decides, with all its reasons.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
        DeadlineNearError: `expired()` holds.
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
        rejected, is_helpless = np.zeros_like(found), np.zeros_like(found)
        for reason, mask in failures:
            rejected |= mask & left
            resource = missing_resource(reason)
            if resource is not None:
                is_helpless |= mask & (snapshot.allocatable(resource) < min(requests[resource], LARGEST_AMOUNT))
            elif reason not in _RESOLVABLE and not reason.endswith(node_volume_limits.NOT_INSTALLED):
                is_helpless |= mask
        found[rejected & ~is_helpless] = True
        left = left & ~rejected

    with_nominated = nodes_with_nominated_pods(pod, snapshot, profile.scheduler_names, expired)
    for plugin in in_time(profile.filters if with_nominated else (), expired):
        reject(with_nominated.failures(plugin, left) if with_nominated else ())
    for plugin in in_time(profile.filters, expired):
        reject(plugin.filter(pod, snapshot, expired))
    return found


def _waits_for_victims(pod: PodInfo, snapshot: Snapshot, potential: Mask) -> bool:
    """Return whether pods that were evicted for `pod` still end on its nominated node.

    Source: default_preemption.go, PodEligibleToPreemptOthers
    """
    row = snapshot.rows.get(pod.nomination.node_name) if pod.nomination.node_name else None
    if row is None or not potential[row]:
        return False
    priority = pod.preemption.priority or 0
    return any(each.is_preempted and each.priority < priority for each in snapshot.nodes[row].pods)


def _rooms(
    profile: Profile,
    pod: PodInfo,
    snapshot: Snapshot,
    rows: Iterable[int],
    reasons: Counter[str],
    expired: Expired,
) -> Iterator[tuple[str, NodeRoom]]:
    """Yield the nodes in `rows` that can take the pod without pods of lower priority; count why the others cannot."""
    room, priority = Room(profile, pod, snapshot, expired), pod.preemption.priority or 0
    for row in in_time(rows, expired):
        if snapshot.nodes[row].lowest_priority >= priority:
            reasons[_NO_VICTIMS] += 1
            continue
        on_node = room.on(row)
        if rejected := on_node.rejections():
            reasons.update(rejected)
        else:
            yield snapshot.nodes[row].node.name, on_node


def _compared(profile: Profile, potential: int) -> int:
    """Return the number of candidates with which kube-scheduler ends its search among so many potential nodes."""
    args = profile.args
    return max(potential * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)


def _candidates(snapshot: Snapshot, rooms: Mapping[str, NodeRoom], expired: Expired) -> list[list[Candidate]]:
    """Return what kube-scheduler may evict on each node."""
    budgets = snapshot.disruption_budgets or ()
    return [candidates_on(node, room, budgets, expired) for node, room in in_time([*rooms.items()], expired)]


def _chosen(
    profile: Profile, pod: PodInfo, snapshot: Snapshot, found: Sequence[Sequence[Candidate]]
) -> PredictedPreemption:
    """Return the choice among the outcomes of each node."""
    notes = [*_notes(snapshot)]
    # An outcome can win if no other node is better in all its outcomes.
    worst = [max(each.cost for each in outcomes) for outcomes in found]
    winners = [
        each
        for number, outcomes in enumerate(found)
        for each in outcomes
        if all(each.cost <= cost for other, cost in enumerate(worst) if other != number)
    ]
    interested = [each.name for each in profile.preempting_extenders if each.applies_to(pod)]
    if interested:
        winners = [each for outcomes in found for each in outcomes]
        notes.insert(0, f"{', '.join(interested)} can choose among {len(found)} nodes")
    nodes = tuple(dict.fromkeys(each.node for each in winners))
    counts = [len(each.victims) for each in winners]
    possible = {key_of(pod): pod for each in winners for pod in _possible(each, snapshot)}
    is_exact = len(winners) == 1 and not winners[0].tied and not interested
    message = ""
    if len(nodes) == 1 and min(counts) == max(counts) and not interested:
        message = _success(snapshot, nodes[0], counts[0])
    if not is_exact and not interested:
        notes.insert(0, _tie(nodes, counts, len(possible)))
    return PredictedPreemption(
        nodes=nodes,
        victims=tuple(possible.values()),
        least=min(counts),
        most=max(counts),
        violates=tuple(dict.fromkeys(name for each in winners for name in each.violates)),
        is_exact=is_exact,
        why="; ".join(notes),
        message=message,
        candidates=len(found),
    )


def _possible(candidate: Candidate, snapshot: Snapshot) -> list[RunningPod]:
    """Return the pods that may be evicted: the victims, and those that are equal to some of them."""
    if not candidate.tied:
        return [*candidate.victims]
    names = {key_of(each) for each in candidate.victims}
    pods = snapshot.nodes[snapshot.rows[candidate.node]].pods
    others = [each for each in pods if key_of(each) in candidate.tied and key_of(each) not in names]
    return [*candidate.victims, *others]


def _success(snapshot: Snapshot, node: str, count: int) -> str:
    if not snapshot.release.has(Change.PREEMPTION_NAMES_NODE):
        return ""
    return f"preemption: found a potential placement for pod on node {node}, preempting {count} victims"


def _tie(nodes: Sequence[str], counts: Sequence[int], possible: int) -> str:
    number = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    if len(nodes) > 1:
        named = ", ".join(nodes[:_MOST_NAMES]) + (", …" if len(nodes) > _MOST_NAMES else "")
        return f"one of {named}; {number} {'victim' if max(counts) == 1 else 'victims'} each"
    return f"{number} of these {possible}: they are equal to kube-scheduler"


def _notes(snapshot: Snapshot) -> Iterable[str]:
    """Yield what is not known of PodDisruptionBudgets."""
    if snapshot.disruption_budgets is None:
        yield "PodDisruptionBudgets are not known"
        return
    stale = [f"{each.namespace}/{each.name}" for each in snapshot.disruption_budgets if each.is_stale]
    if stale:
        named = ", ".join(stale[:_MOST_NAMES]) + (", …" if len(stale) > _MOST_NAMES else "")
        yield f"the status of PodDisruptionBudget {named} is older than its spec"
