"""The pods of one node that kube-scheduler evicts for a pod, and the cost by which it compares nodes.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
framework/preemption/preemption.go, pickOneNodeForPreemption; framework/preemption/util.go
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice, permutations, product
from operator import attrgetter, not_

from webhook.cluster.node_info import RunningPod, key_of
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import selector_matches
from webhook.placement.preemption.node_room import NodeRoom

# kube-scheduler adds it to each priority, so that the sum grows with every victim.
ABOVE_ALL_PRIORITIES = 2**31
# The most orders of equally important pods that are tried on a node.
_MOST_ORDERS = 24

Cost = tuple[int, int, int, int, float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, the pods to evict there (the most important first), and the PodDisruptionBudgets that this violates.

    kube-scheduler minimizes `cost`. `tied` are pods that are equal for kube-scheduler; it evicts as many of them as are
    in `victims`. A pod can be in `tied` twice. `is_open` is true if there are more outcomes than were tried; their
    victims are also in `tied`.
    """

    node: str
    victims: tuple[RunningPod, ...]
    violates: tuple[str, ...]
    cost: Cost
    tied: tuple[RunningPod, ...] = ()
    is_open: bool = False


def start_of(pod: RunningPod) -> float:
    """Return the start time of `pod`. A pod that has not started counts as if it starts now."""
    return pod.started_seconds or math.inf


class Protection:
    """The PodDisruptionBudgets that protect pods. Pods of one template share their labels and thus their budgets."""

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._allowed: list[int] = []
        self._budgets: dict[str, list[tuple[int, DisruptionBudget]]] = {}
        for number, each in enumerate(budgets):
            self._allowed.append(each.disruptions_allowed)
            self._budgets.setdefault(each.namespace, []).append((number, each))
        # The number, the full name and the disrupted pods of each budget, by namespace and labels of a pod.
        self._known: dict[tuple[str, int], list[tuple[int, str, frozenset[str]]]] = {}

    def violated(self, ordered: Sequence[RunningPod]) -> list[str]:
        """Return, for each pod, the budget that its eviction violates after the pods before it, or "" for none.

        The result is empty if there are no budgets. Pods without labels and budgets with an empty selector match
        nothing here, as in kube-scheduler.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation
        """
        left, found = [*self._allowed], []
        namespace, labels = "", None
        known: list[tuple[int, str, frozenset[str]]] = []
        for pod in ordered if self._budgets else ():
            if pod.labels is not labels or pod.namespace != namespace:
                namespace, labels, known = pod.namespace, pod.labels, self._protecting(pod)
            violated = ""
            for number, name, disrupted in known:
                if pod.name not in disrupted:
                    left[number] -= 1
                    if left[number] < 0:
                        violated = name
                        break
            found.append(violated)
        return found

    def _protecting(self, pod: RunningPod) -> list[tuple[int, str, frozenset[str]]]:
        key = pod.namespace, id(pod.labels)
        if key not in self._known:
            every = self._budgets.get(pod.namespace, ()) if pod.labels else ()
            selecting = [each for each in every if each[1].selector and selector_matches(each[1].selector, pod.labels)]
            self._known[key] = [(number, each.full_name, each.disrupted_pods) for number, each in selecting]
        return self._known[key]


def candidates_on(node: str, room: NodeRoom, protection: Protection, expired: Expired) -> list[Candidate]:
    """Return the candidates of `node`, on which `room` is the room without the pods of lower priority.

    There is one candidate, unless the result depends on the unknown order of equally important pods with different
    requests. There is none if all pods can stay, because kube-scheduler then does not choose the node.

    Raises:
        WorkSpentError: the filters that read pods have run too often.
    """
    ordered = _by_importance(room.lower)
    first, mixed = _select(node, room, ordered, protection)
    if not mixed:
        return [first] if first else []
    number = math.prod(min(math.factorial(min(len(group), 9)), 2 * _MOST_ORDERS) for group in mixed)
    if number > _MOST_ORDERS:
        # The room that these groups leave decides on all pods after them.
        return [replace(first, tied=tuple(room.deciding(ordered)), is_open=True)] if first else []
    found = {}
    for order in in_time(_orders(ordered, mixed), expired):
        if (each := _select(node, room, order, protection)[0]) is not None:
            found[each.cost, frozenset(map(key_of, each.victims))] = each
    return [*found.values()]


def _by_importance(pods: Iterable[RunningPod]) -> list[RunningPod]:
    """Return `pods` by priority, then by start time. Pods that have not started come last.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, MoreImportantVictim
    """
    ordered = sorted(pods, key=attrgetter("started_seconds"))
    waiting = bisect_right(ordered, 0, key=attrgetter("started_seconds"))
    ordered = ordered[waiting:] + ordered[:waiting]
    ordered.sort(key=attrgetter("priority"), reverse=True)
    return ordered


def _select(
    node: str, room: NodeRoom, ordered: Sequence[RunningPod], protection: Protection
) -> tuple[Candidate | None, list[Sequence[RunningPod]]]:
    """Return the candidate, with victims from `ordered`, and groups of equally important pods whose order matters."""
    violated = protection.violated(ordered)
    if any(violated):
        tried = sorted(range(len(ordered)), key=lambda at: not violated[at])
        staying = dict(zip(tried, room.staying([ordered[at] for at in tried]), strict=True))
        flags = [staying[at] for at in range(len(ordered))]
        undecided = {*_undecided(ordered, flags), *_undecided(ordered, [*map(bool, violated)])}
    else:
        flags = room.staying(ordered)
        undecided = {*_undecided(ordered, flags)}
    violating = {*map(key_of, compress(ordered, violated))} if undecided else set()
    tied: list[RunningPod] = []
    mixed: list[Sequence[RunningPod]] = []
    for each in sorted(undecided, key=attrgetter("start")):
        group = room.deciding(ordered[each.start : each.stop])
        if _are_interchangeable(group, room, violating):
            tied += group
        else:
            mixed.append(group)
    victims = tuple(compress(ordered, map(not_, flags)))
    if not victims:
        return None, mixed
    broken = [budget for budget, stays in zip(violated, flags, strict=True) if budget and not stays] if violated else []
    return Candidate(node, victims, tuple(sorted({*broken})), _cost(victims, len(broken)), tuple(tied)), mixed


def _are_interchangeable(group: Sequence[RunningPod], room: NodeRoom, violating: Collection[tuple[str, str]]) -> bool:
    """Return whether a choice among the pods of `group` makes no difference except for their names.

    `violating` are the keys of the pods whose eviction violates a budget.
    """
    if not group:
        return True
    if violating and len({key_of(each) in violating for each in group}) > 1:
        # The same budgets select equal pods; which of them violates one is a matter of their order.
        return all(map(group[0].is_same_load, group))
    return room.are_equal(group)


def _undecided(ordered: Sequence[RunningPod], flags: Sequence[bool]) -> Iterator[range]:
    """Yield the places of equally important pods if only some of them stay: another order has other victims."""
    end = 0
    first = flags.index(not flags[0]) if (not all(flags) and any(flags)) else len(flags)
    for at in range(first, len(flags)):
        if flags[at] == flags[at - 1] or at < end:
            continue
        rank = _rank(ordered[at])
        if rank == _rank(ordered[at - 1]):
            end = bisect_right(ordered, rank, key=_rank)
            yield range(bisect_left(ordered, rank, key=_rank), end)


def _rank(pod: RunningPod) -> tuple[int, float]:
    return -pod.priority, start_of(pod)


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


def _orders(ordered: Sequence[RunningPod], mixed: Sequence[Sequence[RunningPod]]) -> Iterator[list[RunningPod]]:
    group_of = {key_of(each): number for number, group in enumerate(mixed) for each in group}
    for orders in product(*(islice(permutations(group), _MOST_ORDERS) for group in mixed)):
        left = [iter(order) for order in orders]
        yield [next(left[group_of[key]]) if (key := key_of(each)) in group_of else each for each in ordered]
