"""The pods of one node that kube-scheduler evicts for a pod, and how it compares nodes.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
framework/preemption/preemption.go, pickOneNodeForPreemption; framework/preemption/util.go
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations, product
from operator import attrgetter

from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import Budgets, DisruptionBudget
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import selector_matches
from webhook.placement.preemption.room import NodeRoom

# kube-scheduler adds it to each priority, so that the sum grows with every victim.
ABOVE_ALL_PRIORITIES = 2**31
# The most orders of equally important pods that are tried on a node.
_MOST_ORDERS = 24

Cost = tuple[int, int, int, int, float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, the pods to evict there, the most important first, and the PodDisruptionBudgets that this violates.

    `cost` is what kube-scheduler minimizes. `tied` are the pods that are equal to kube-scheduler, of which it evicts as
    many as are among `victims`. `is_open`: there are more outcomes than were tried, with victims among `tied`, too.
    """

    node: str
    victims: tuple[RunningPod, ...]
    violates: tuple[str, ...]
    cost: Cost
    tied: frozenset[tuple[str, str]] = frozenset()
    is_open: bool = False


def key_of(pod: RunningPod) -> tuple[str, str]:
    """Return the namespace and the name of `pod`."""
    return pod.namespace, pod.name


def start_of(pod: RunningPod) -> float:
    """Return when `pod` started; a pod that has not started counts as one that starts now."""
    return pod.started_seconds or math.inf


def candidates_on(node: str, room: NodeRoom, budgets: Budgets, expired: Expired) -> list[Candidate]:
    """Return what kube-scheduler may evict on `node`, in which the pods of lower priority leave `room`.

    There is one outcome, unless equally important pods of different requests decide, whose order is not known. There is
    none if all pods can stay: kube-scheduler then does not choose the node.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    ordered = _by_importance(room.lower)
    first, mixed = _select(node, room, ordered, budgets)
    if not mixed:
        return [first] if first else []
    found = {}
    for order in in_time(islice(_orders(ordered, mixed), _MOST_ORDERS), expired):
        if (each := _select(node, room, order, budgets)[0]) is not None:
            found[each.cost, frozenset(map(key_of, each.victims))] = each
    if math.prod(min(math.factorial(min(len(group), 9)), 2 * _MOST_ORDERS) for group in mixed) <= _MOST_ORDERS:
        return [*found.values()]
    undecided = frozenset(key_of(each) for group in mixed for each in group)
    return [replace(each, tied=each.tied | undecided, is_open=True) for each in found.values()]


def _by_importance(pods: Iterable[RunningPod]) -> list[RunningPod]:
    """Return `pods` by priority, then by start; those that have not started come last.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, MoreImportantVictim
    """
    ordered = sorted(pods, key=attrgetter("started_seconds"))
    waiting = bisect_right(ordered, 0, key=attrgetter("started_seconds"))
    ordered = ordered[waiting:] + ordered[:waiting]
    ordered.sort(key=attrgetter("priority"), reverse=True)
    return ordered


def _select(
    node: str, room: NodeRoom, ordered: Sequence[RunningPod], budgets: Budgets
) -> tuple[Candidate | None, list[list[RunningPod]]]:
    """Return the victims among `ordered`, and the groups of equally important, different pods that decide on them."""
    violating = _violating(ordered, budgets)
    tried = sorted(ordered, key=lambda pod: key_of(pod) not in violating) if violating else ordered
    flags = room.staying(tried)
    victims = [each for each, stays in zip(tried, flags, strict=True) if not stays]
    if violating:
        victims = _by_importance(victims)
        staying = {key_of(each) for each, stays in zip(tried, flags, strict=True) if stays}
        flags = [key_of(each) in staying for each in ordered]
    tied: set[tuple[str, str]] = set()
    mixed = []
    undecided = [*_undecided(ordered, flags)]
    if violating:
        undecided += _undecided(ordered, [key_of(each) in violating for each in ordered])
    for each in undecided:
        group = [pod for pod in each if room.decides(pod)]
        if all(_are_interchangeable(pod, group[0], room, violating) for pod in group):
            tied.update(map(key_of, group))
        elif group not in mixed:
            mixed.append(group)
    if not victims:
        return None, mixed
    broken = {name for each in victims for name in violating.get(key_of(each), ())}
    violations = sum(key_of(each) in violating for each in victims) if violating else 0
    return Candidate(node, tuple(victims), tuple(sorted(broken)), _cost(victims, violations), frozenset(tied)), mixed


def _are_interchangeable(
    one: RunningPod, other: RunningPod, room: NodeRoom, violating: Mapping[tuple[str, str], object]
) -> bool:
    """Return whether a choice between both pods makes no difference but for their names."""
    if one.is_same_load(other):
        # The same budgets select both; which of them violates one is a matter of their order.
        return True
    return room.are_equal(one, other) and (key_of(one) in violating) == (key_of(other) in violating)


def _undecided(ordered: Sequence[RunningPod], flags: Sequence[bool]) -> Iterator[list[RunningPod]]:
    """Yield the equally important pods of which some stay and some do not: another order has other victims."""
    end = 0
    for at, (stays, next_stays) in enumerate(pairwise(flags)):
        if stays == next_stays or at < end - 1 or not _are_equal(ordered[at], ordered[at + 1]):
            continue
        start, end = at, at + 2
        while start > 0 and _are_equal(ordered[start - 1], ordered[at]):
            start -= 1
        while end < len(ordered) and _are_equal(ordered[end], ordered[at]):
            end += 1
        yield [*ordered[start:end]]


def _are_equal(one: RunningPod, other: RunningPod) -> bool:
    return one.started_seconds == other.started_seconds and one.priority == other.priority


def _cost(victims: Sequence[RunningPod], violations: int) -> Cost:
    highest = victims[0].priority
    earliest = min(start_of(each) for each in victims if each.priority == highest)
    return (
        violations,
        highest,
        sum(each.priority + ABOVE_ALL_PRIORITIES for each in victims),
        len(victims),
        -earliest,
    )


def _violating(ordered: Iterable[RunningPod], budgets: Budgets) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the pods whose eviction violates a budget, the pods before them counted, with the budget.

    A pod without labels, and a budget with an empty selector, match nothing here.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation
    """
    used: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for pod in ordered if budgets else ():
        for budget in budgets.get(pod.namespace, ()):
            if not _protects(budget, pod):
                continue
            used[budget.namespace, budget.name] += 1
            if used[budget.namespace, budget.name] > budget.disruptions_allowed:
                found[key_of(pod)] = (budget.full_name,)
                break
    return found


def _protects(budget: DisruptionBudget, pod: RunningPod) -> bool:
    if pod.name in budget.disrupted_pods or not pod.labels:
        return False
    return bool(budget.selector) and selector_matches(budget.selector, pod.labels)


def _orders(ordered: Sequence[RunningPod], mixed: Sequence[Sequence[RunningPod]]) -> Iterator[list[RunningPod]]:
    """Yield `ordered` with the pods of each group of `mixed` in every order."""
    group_of = {key_of(each): number for number, group in enumerate(mixed) for each in group}
    for orders in product(*(islice(permutations(group), _MOST_ORDERS) for group in mixed)):
        left = [iter(order) for order in orders]
        yield [next(left[group_of[key]]) if (key := key_of(each)) in group_of else each for each in ordered]
