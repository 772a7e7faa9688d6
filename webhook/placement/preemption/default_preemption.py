"""DefaultPreemption: predict the pods that kube-scheduler evicts for a pod that no node can take.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, Evaluator.Preempt, and
framework/plugins/defaultpreemption/default_preemption.go
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot
from webhook.documents.listing import some
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
from webhook.placement.preemption.demands import Question
from webhook.placement.preemption.rooms import Rooms
from webhook.placement.preemption.victims import Candidate, Victims
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
_LONGEST_SHOWN = 63
# The most nodes that are evaluated before the deadline is checked.
_MOST_AT_ONCE = 256


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
    potential = potential_nodes(profile, pod, snapshot, expired)
    if _waits_for_victims(pod, snapshot, potential):
        return PredictedPreemption(message=_WAITS)
    rows, reasons = np.flatnonzero(potential).tolist(), Counter[str]()
    compared, candidates = _compared(profile, len(rows)), 0
    question, evaluated = Question(profile, pod, snapshot, expired), []
    # One more candidate than kube-scheduler compares shows that the choice is random.
    for rooms in _rooms(question, rows, min(compared + 1, _MOST_AT_ONCE), reasons):
        evaluated.append(rooms)
        candidates += int(np.count_nonzero(rooms.fits))
        if candidates > compared:
            random = f"kube-scheduler compares {compared}, from a random one"
            why = "; ".join([random, *unknown_of_budgets(snapshot), *_kept_rooms(question, rows)])
            most = int(snapshot.load.pods[rows].max())
            return PredictedPreemption(candidates=compared + 1, least=1, most=most, is_exact=False, why=why)
    if not candidates:
        reasons[_NOT_HELPFUL] += len(snapshot.nodes) - len(rows)
        counted = {reason: count for reason, count in reasons.items() if count}
        return PredictedPreemption(message=f"preemption: {fit_error(len(snapshot.nodes), counted)}")
    budgets = snapshot.disruption_budgets or ()
    found = [outcomes for rooms in evaluated for outcomes in Victims(rooms, budgets).candidates()]
    if not found:
        return PredictedPreemption()
    chosen = choose(profile, pod, snapshot, found)
    return replace(chosen, why="; ".join(filter(None, (chosen.why, *_kept_rooms(question, rows)))))


def _kept_rooms(question: Question, rows: Sequence[int]) -> Iterator[str]:
    """Yield a text with the nominated pods on the nodes in `rows`. A nomination can be older than the pods there."""
    nodes, nominated = question.snapshot.nodes, question.nominated
    names = [
        f"{each.namespace}/{each.name} on {nodes[row].node.name}"
        for row in sorted(nominated.keys() & rows)
        for each in nominated[row]
    ]
    if names:
        yield f"room is kept for nominated pods: {some(names)}"


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

    Of equal candidates, it is the first.

    Raises:
        BudgetSpentError: the search for devices takes too many steps.
    """
    if pod.preemption.is_never:
        return None
    question, budgets = Question(profile, pod, snapshot, expired), snapshot.disruption_budgets or ()
    found = (Victims(rooms, budgets).of_one_order() for rooms in _rooms(question, [*rows], _MOST_AT_ONCE, Counter()))
    return min((each for outcomes in found for each in outcomes), key=lambda each: each.cost, default=None)


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
    rows, budgets = np.flatnonzero(potential).tolist(), snapshot.disruption_budgets or ()
    first, found = dice.randrange(len(rows)) if rows else 0, list[Candidate]()
    compared = _compared(profile, len(rows))
    question = Question(profile, pod, snapshot, expired)
    tried = _rooms(question, rows[first:] + rows[:first], min(compared, _MOST_AT_ONCE), Counter(), dice.shuffle)
    for each in (each for rooms in tried for each in Victims(rooms, budgets).of_one_order()):
        found.append(each)
        if len(found) >= compared and not all(each.violates for each in found):
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
    if with_nominated:
        for plugin in in_time(profile.filters, expired):
            reject(with_nominated.failures(plugin, left))
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


def _rooms(
    question: Question,
    rows: Sequence[int],
    at_once: int,
    reasons: Counter[str],
    shuffle: Callable[[list[Any]], None] | None = None,
) -> Iterator[Rooms]:
    """Yield the nodes in `rows` that have pods of lower priority, `at_once` or fewer together."""
    nodes = question.snapshot.nodes
    lower = [row for row in rows if nodes[row].lowest_priority < question.priority]
    reasons[_NO_VICTIMS] += len(rows) - len(lower)
    for start in in_time(range(0, len(lower), at_once), question.expired):
        rooms = Rooms(question, lower[start : start + at_once], shuffle)
        reasons.update(rooms.reasons)
        if rooms.fits.any():
            yield rooms


def _compared(profile: Profile, potential: int) -> int:
    """Return the number of candidates after which kube-scheduler ends its search among `potential` nodes."""
    args = profile.args
    return max(potential * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)
