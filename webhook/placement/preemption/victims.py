"""The pods of each node that kube-scheduler evicts for a pod, and the cost by which it compares nodes.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
framework/preemption/preemption.go, pickOneNodeForPreemption
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Column, Rows
from webhook.placement.preemption.lower_pods import NOT_STARTED
from webhook.placement.preemption.orders import every_order, in_one
from webhook.placement.preemption.protection import Protection
from webhook.placement.preemption.rooms import Rooms, total

# kube-scheduler adds it to each priority, so that the sum grows with every victim.
ABOVE_ALL_PRIORITIES = 2**31
# The most pods in all orders that are tried, which takes some 5 ms.
_MOST_TRIED = 50_000

Cost = tuple[int, int, int, int, int]


class Candidate(NamedTuple):
    """A node, the pods to evict there (the most important first), and the PodDisruptionBudgets that this violates.

    kube-scheduler minimizes `cost`. `tied` are pods that it may evict instead of some of `victims`, because they are
    equal for it. `is_open` is true if there are more outcomes than were tried; their other victims are also in `tied`.
    `selecting` returns the numbers of the PodDisruptionBudgets that select victims.
    """

    node: str
    victims: tuple[RunningPod, ...]
    violates: tuple[str, ...]
    cost: Cost
    tied: tuple[RunningPod, ...] = ()
    is_open: bool = False
    selecting: Callable[[], frozenset[int]] = frozenset


class _Tried(NamedTuple):
    """Orders in which pods are put back: the place of each pod, order by order, and the `nodes` of the orders.

    Pods are listed the most important first. `stays` is true for the pods that stay, and `violated` are the budgets as
    in `Protection`.
    """

    places: Rows
    order_of: Rows
    nodes: Rows
    violated: Column
    stays: Mask


class Victims:
    """The victims, under `budgets`, on the nodes of `rooms` where the pod fits without the pods of lower priority."""

    def __init__(self, rooms: Rooms, budgets: Sequence[DisruptionBudget]) -> None:
        self._rooms, self._lower = rooms, rooms.lower
        self._protection = Protection(budgets, rooms.lower, rooms.expired)
        places = np.flatnonzero(rooms.fits[self._lower.node_of])
        nodes = np.flatnonzero(rooms.fits)
        number = np.cumsum(rooms.fits) - 1
        order_of = number[self._lower.node_of[places]]
        violated = self._protection.violated[places]
        self._first = self._try(places, order_of, nodes, violated, rooms.left[:, nodes])
        self._bounds = _bounds(order_of, len(nodes))
        self._decides = rooms.deciding()

    def of_one_order(self) -> list[Candidate]:
        """Return the candidate of each node if equally important pods are taken in their present order."""
        return [each for each in self._candidates(self._first) if each]

    def candidates(self) -> list[list[Candidate]]:
        """Return the candidates of each node.

        There is one candidate, unless the result depends on the unknown order of equally important pods with different
        requests. A node on which all pods can stay has none, because kube-scheduler then does not choose the node.
        """
        first = self._first
        tied, mixed = self._groups(first)
        found = [[each] if each else [] for each in self._candidates(first, tied)]
        unordered = {number for number, node in enumerate(first.nodes.tolist()) if node in self._protection.unordered}
        work, patterns, asked = _MOST_TRIED, dict[tuple[Any, ...], Rows](), mixed.keys() | unordered
        while asked:
            orders = dict[int, Rows]()
            undecided, left = self._undecided(mixed, [*chain.from_iterable(tied.values())])
            for number in sorted(asked - unordered):
                every = every_order(undecided[number], mixed[number], patterns)
                work -= 0 if every is None else every.size
                if every is not None and work >= 0:
                    orders[number] = every
            violated = self._violated(orders)
            for number in asked - orders.keys():
                if found[number]:
                    # The room that these pods leave decides on all pods after them.
                    pods, bounds = self._possible
                    here = pods[bounds[number] : bounds[number + 1]]
                    found[number] = [found[number][0]._replace(tied=here, is_open=True)]
            asked = self._tried(orders, violated, left, mixed, found) if orders else set()
        return [outcomes for outcomes in found if outcomes]

    def _violated(self, orders: dict[int, Rows]) -> dict[int, Column]:
        """Return the budgets that the pods in `orders` violate; remove the nodes on which these can be in any order."""
        protection = self._protection
        found = {number: protection.violated[each.ravel()] for number, each in orders.items()}
        mixed = {number: each for number, each in orders.items() if protection.is_mixed[each[0]].any()}
        if mixed:
            # The order of the pods decides which of them violate a budget.
            places, order_of, numbers = in_one(mixed)
            in_order = protection.in_order(places, order_of)
            ends = np.cumsum([each.size for each in mixed.values()])
            found |= zip(mixed, np.split(in_order.violated, ends[:-1]), strict=True)
            for number in {*numbers[in_order.unordered].tolist()}:
                del orders[number], found[number]
        return found

    def _tried(
        self,
        orders: Mapping[int, Rows],
        violated: Mapping[int, Column],
        left: Column,
        mixed: dict[int, list[Rows]],
        found: list[list[Candidate]],
    ) -> set[int]:
        """Set the candidates of the nodes of `orders` in `found`. Return the nodes for which there are more orders.

        On these, one of `orders` leaves room for only some of a group of equally important pods, which becomes `mixed`.
        """
        tried, numbers = self._distinct(orders, violated, left)
        tied, groups = self._groups(tried)
        more = set[int]()
        for order, of_order in groups.items():
            known = {int(each[0]): each for each in (*of_order, *mixed[numbers[order]])}
            if len(known) > len(mixed[numbers[order]]):
                mixed[numbers[order]] = [known[first] for first in sorted(known)]
                more.add(numbers[order])
        for number in orders.keys() - more:
            found[number] = []
        for number, each in zip(numbers, self._candidates(tried, tied), strict=True):
            if each and number not in more:
                found[number].append(each)
        return more

    @cached_property
    def _possible(self) -> tuple[tuple[RunningPod, ...], list[int]]:
        """Return the pods that stay and can be victims in other orders, with the bounds of each node."""
        first = self._first
        at = np.flatnonzero(first.stays & self._decides[first.places])
        return self._pods(first.places[at].tolist()), _bounds(first.order_of[at], len(first.nodes))

    def _undecided(self, mixed: Mapping[int, Sequence[Rows]], tied: Sequence[int]) -> tuple[list[Rows], Column]:
        """Return the pods of each node that can stay in one order and not in another, and what is left before them.

        `tied` are pods that stay in the first order and are tied with victims.
        """
        rooms, first = self._rooms, self._first
        left = rooms.left.take(first.nodes, axis=1)
        first_mixed = np.zeros(len(first.nodes), dtype=np.intp)
        for number, groups in mixed.items():
            first_mixed[number] = groups[0][0]
        is_special = rooms.has_volumes[first.places] | (first.violated >= 0)
        first_mixed[np.unique(first.order_of[is_special])] = 0
        stays = first.stays & (first.places < first_mixed[first.order_of])
        stays[np.searchsorted(first.places, tied)] = False
        kept = total(rooms.used.take(first.places, axis=1) * stays)
        left = left - kept[:, self._bounds[1:]] + kept[:, self._bounds[:-1]]
        others = first.places[~stays]
        bounds = _bounds(first.order_of[~stays], len(first.nodes))
        return [others[start:end] for start, end in pairwise(bounds)], left

    def _distinct(
        self, orders: Mapping[int, Rows], violated_on: Mapping[int, Column], left: Column
    ) -> tuple[_Tried, list[int]]:
        """Try `orders` of each node. Return those that have different victims or violations, and the node of each.

        Nodes have the numbers of their orders in the first try.
        """
        places, order_of, numbers = in_one(orders)
        violated = np.concatenate([*violated_on.values()])
        tried = self._try(places, order_of, self._first.nodes[numbers], violated, left.take(numbers, axis=1))
        gone = np.flatnonzero(~tried.stays)
        gone = gone[np.lexsort((places[gone], order_of[gone]))]
        victims = 2 * places[gone] + (violated[gone] >= 0)
        data, bounds = victims.tobytes(), [victims.itemsize * each for each in _bounds(order_of[gone], len(numbers))]
        first = {data[start:end]: order for order, (start, end) in enumerate(pairwise(bounds))}
        is_kept = np.zeros(len(numbers), dtype=np.bool_)
        is_kept[[*first.values()]] = True
        is_in, number_of = is_kept[order_of], np.cumsum(is_kept) - 1
        order_of = number_of[order_of[is_in]]
        kept = _Tried(places[is_in], order_of, tried.nodes[is_kept], violated[is_in], tried.stays[is_in])
        return kept, numbers[is_kept].tolist()

    def _try(self, places: Rows, order_of: Rows, nodes: Rows, violated: Column, left: Column) -> _Tried:
        # Pods that violate a budget are put back first.
        at = np.lexsort((violated < 0, order_of))
        stays = np.empty(len(places), dtype=np.bool_)
        stays[at] = self._rooms.staying(places[at], order_of, nodes, left) if len(places) else True
        return _Tried(places, order_of, nodes, violated, stays)

    def _candidates(self, tried: _Tried, tied: dict[int, list[int]] | None = None) -> Iterator[Candidate | None]:
        """Yield the candidate of each order, or None if all pods stay."""
        names = self._rooms.names
        gone = np.flatnonzero(~tried.stays)
        places, order_of, violated = tried.places[gone], tried.order_of[gone], tried.violated[gone]
        costs = self._costs(places, order_of, violated, len(tried.nodes))
        victims, budgets = self._pods(places.tolist()), violated.tolist()
        kinds = self._protection.kinds[places].tolist()
        bounds = pairwise(_bounds(order_of, len(tried.nodes)))
        for order, (node, cost, (start, end)) in enumerate(zip(tried.nodes.tolist(), costs, bounds, strict=True)):
            if start == end:
                yield None
                continue
            violates = {self._protection.name(each) for each in budgets[start:end] if each >= 0} if cost[0] else ()
            equal = self._pods(tied[order]) if tied and order in tied else ()
            selecting = partial(self._protection.selecting, kinds[start:end])
            yield Candidate(names[node], victims[start:end], tuple(sorted(violates)), cost, equal, selecting=selecting)

    def _costs(self, places: Rows, order_of: Rows, violated: Column, count: int) -> list[Cost]:
        """Return the cost of each order by its victims in `places`."""
        lower = self._lower
        priorities, starts = lower.priorities[places], lower.starts[places]
        highest, earliest = np.full(count, -ABOVE_ALL_PRIORITIES), np.full(count, NOT_STARTED)
        sums, violations = np.zeros(count, dtype=np.int64), np.bincount(order_of[violated >= 0], minlength=count)
        np.maximum.at(highest, order_of, priorities)
        np.add.at(sums, order_of, priorities + ABOVE_ALL_PRIORITIES)
        is_highest = priorities == highest[order_of]
        np.minimum.at(earliest, order_of[is_highest], starts[is_highest])
        columns = (violations, highest, sums, np.bincount(order_of, minlength=count), -earliest)
        return [*zip(*(column.tolist() for column in columns), strict=True)]

    def _groups(self, tried: _Tried) -> tuple[dict[int, list[int]], dict[int, list[Rows]]]:
        """Return, by order, the places of the pods that are tied with victims, and the groups whose order matters.

        A group is equally important pods of one node if only some of them stay. Those that stay are tied with the
        others if a choice among them makes no difference except for their names.
        """
        lower, rooms, protection = self._lower, self._rooms, self._protection
        tied: dict[int, list[int]] = {}
        mixed: dict[int, list[Rows]] = {}
        is_read = self._decides | (protection.is_mixed & (protection.kinds > 0))
        at = np.flatnonzero((lower.is_tied & is_read)[tried.places])
        if not len(at):
            return tied, mixed
        places, order_of = tried.places[at], tried.order_of[at]
        ranks, is_mixed_rank = lower.ranks[places], protection.is_mixed[places]
        # Pods that violate a budget are put back before others of their rank.
        group = 2 * ((int(ranks.max()) + 1) * order_of + ranks) + ((tried.violated[at] >= 0) & ~is_mixed_rank)
        order = np.lexsort((places, group))
        places, group, stays = places[order], group[order], tried.stays[at[order]]
        is_first = np.append([True], group[1:] != group[:-1])
        starts = np.flatnonzero(is_first)
        is_open = np.logical_or.reduceat(stays, starts) & ~np.logical_and.reduceat(stays, starts)
        is_mixed = np.logical_or.reduceat(~is_first & self._differs(places), starts)
        # If a pod shares a volume, others can stay after it that do not fit before it.
        is_mixed_anyway = np.logical_or.reduceat((protection.is_mixed | rooms.shares_volumes)[places], starts)
        orders, bounds = order_of[order[starts]].tolist(), [*starts.tolist(), len(at)]
        listed, is_kept = places.tolist(), stays.tolist()
        for number in np.flatnonzero(is_open | (is_mixed & is_mixed_anyway)).tolist():
            here = slice(bounds[number], bounds[number + 1])
            if is_mixed[number]:
                mixed.setdefault(orders[number], []).append(places[here])
            else:
                tied.setdefault(orders[number], []).extend(compress(listed[here], is_kept[here]))
        return tied, mixed

    def _differs(self, places: Rows) -> Mask:
        """Return whether each pod differs from the one before it in what kube-scheduler reads."""
        used, protection = self._rooms.used.take(places, axis=1), self._protection
        found = np.zeros(len(places), dtype=np.bool_)
        found[1:] = (used[:, 1:] != used[:, :-1]).any(axis=0)
        if protection.mixes:
            is_mixed, kinds, decides = (each[places] for each in (protection.is_mixed, protection.kinds, self._decides))
            found[1:] |= is_mixed[1:] & ((kinds[1:] != kinds[:-1]) | (decides[1:] != decides[:-1]))
        if self._rooms.has_volumes.any():
            volumes = np.array([id(each.volumes) for each in self._pods(places.tolist())])
            counts = self._rooms.has_volumes[places]
            found[1:] |= (counts[1:] | counts[:-1]) & (volumes[1:] != volumes[:-1])
        return found

    def _pods(self, places: Iterable[int]) -> tuple[RunningPod, ...]:
        return tuple(map(self._lower.pods.__getitem__, places))


def _bounds(order_of: Rows, count: int) -> list[int]:
    """Return the first entry of each of `count` orders, and the number of entries."""
    found: list[int] = np.searchsorted(order_of, np.arange(count + 1)).tolist()
    return found
