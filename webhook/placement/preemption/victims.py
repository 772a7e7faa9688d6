"""The pods of each node that kube-scheduler evicts for a pod, and the cost by which it compares nodes.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
framework/preemption/preemption.go, pickOneNodeForPreemption
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Column, Rows
from webhook.placement.preemption.lower_pods import NOT_STARTED
from webhook.placement.preemption.protection import Protection
from webhook.placement.preemption.rooms import Rooms

# kube-scheduler adds it to each priority, so that the sum grows with every victim.
ABOVE_ALL_PRIORITIES = 2**31
# The most orders of equally important pods that are tried on a node, and the pods in all orders; the latter are tried
# in some 5 ms.
_MOST_ORDERS = 24
_MOST_TRIED = 50_000

Cost = tuple[int, int, int, int, int]


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


class _Orders(NamedTuple):
    """Orders of the places of pods of one node, one in each row, and what is `left` of each demand before them.

    `number` is the number of the order of the node in the first try.
    """

    number: int
    places: Rows
    left: Column


class Victims:
    """The victims on the nodes of `rooms` that fit without their lower pods, by `budgets`."""

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
        work, orders, deciding = _MOST_TRIED, list[_Orders](), self._rooms.deciding()
        unordered = {number for number, node in enumerate(first.nodes.tolist()) if node in self._protection.unordered}
        for number in sorted(mixed.keys() | unordered):
            every = None if number in unordered else self._orders(number, mixed[number])
            work -= 0 if every is None else every.places.size
            if every is not None and work >= 0:
                orders.append(every)
                found[number] = []
            elif found[number]:
                # The room that these pods leave decides on all pods after them.
                places = first.places[self._bounds[number] : self._bounds[number + 1]]
                equal = tuple([self._lower.pods[place] for place in places[deciding[places]].tolist()])
                found[number] = [replace(found[number][0], tied=equal, is_open=True)]
        if orders:
            tried, numbers = self._distinct(orders)
            for number, each in zip(numbers, self._candidates(tried, self._groups(tried)[0]), strict=True):
                if each:
                    found[number].append(each)
        return [outcomes for outcomes in found if outcomes]

    def _orders(self, number: int, groups: Sequence[Rows]) -> _Orders | None:
        """Return each order in which the pods of `groups` can be, or None if there are too many, also of budgets.

        Pods that stay in any order are left out.
        """
        if math.prod(min(math.factorial(min(len(each), 9)), 2 * _MOST_ORDERS) for each in groups) > _MOST_ORDERS:
            return None
        rooms, first = self._rooms, self._first
        here = slice(self._bounds[number], self._bounds[number + 1])
        places, left = first.places[here], rooms.left[:, first.nodes[number]]
        if not (rooms.has_volumes[places].any() or (first.violated[here] >= 0).any()):
            stays = first.stays[here] & (places < groups[0][0])
            left = left - rooms.used[:, places[stays]].sum(axis=1)
            places = places[~stays]
        orders = places[None]
        for group in groups:
            permuted = group[_permutations(len(group))]
            before = len(orders)
            orders = np.repeat(orders, len(permuted), axis=0)
            orders[:, np.searchsorted(places, group)] = np.tile(permuted, (before, 1))
        protection = self._protection
        if protection.is_mixed[places].any() and any(protection.in_order(row)[2] for row in orders):
            return None
        return _Orders(number, orders, left)

    def _distinct(self, orders: Sequence[_Orders]) -> tuple[_Tried, list[int]]:
        """Try `orders`. Return those that have different victims or violations, and the `number` of each."""
        counts = [len(each.places) for each in orders]
        numbers = np.repeat([each.number for each in orders], counts)
        widths = np.repeat([each.places.shape[1] for each in orders], counts)
        places = np.concatenate([each.places.ravel() for each in orders])
        order_of = np.repeat(np.arange(len(numbers)), widths)
        violated = self._protection.violated[places]
        if self._protection.is_mixed.any():
            # The order of the pods decides which of them violate a budget.
            violated = np.concatenate([self._protection.in_order(row)[0] for each in orders for row in each.places])
        left = np.repeat(np.array([each.left for each in orders]).T, counts, axis=1)
        tried = self._try(places, order_of, self._first.nodes[numbers], violated, left)
        gone = np.flatnonzero(~tried.stays)
        gone = gone[np.lexsort((places[gone], order_of[gone]))]
        victims = 2 * places[gone] + (violated[gone] >= 0)
        bounds = enumerate(pairwise(_bounds(order_of[gone], len(numbers))))
        first = {victims[start:end].tobytes(): order for order, (start, end) in bounds}
        is_kept = np.zeros(len(numbers), dtype=np.bool_)
        is_kept[[*first.values()]] = True
        is_in = is_kept[order_of]
        number_of = np.cumsum(is_kept) - 1
        kept = _Tried(
            places[is_in], number_of[order_of[is_in]], tried.nodes[is_kept], violated[is_in], tried.stays[is_in]
        )
        return kept, numbers[is_kept].tolist()

    def _try(self, places: Rows, order_of: Rows, nodes: Rows, violated: Column, left: Column) -> _Tried:
        # Pods that violate a budget are put back first.
        at = np.lexsort((violated < 0, order_of))
        stays = np.empty(len(places), dtype=np.bool_)
        stays[at] = self._rooms.staying(places[at], order_of, nodes, left) if len(places) else True
        return _Tried(places, order_of, nodes, violated, stays)

    def _candidates(self, tried: _Tried, tied: dict[int, list[int]] | None = None) -> Iterator[Candidate | None]:
        """Yield the candidate of each order, or None if all pods stay."""
        pods, names = self._lower.pods, self._rooms.names
        gone = np.flatnonzero(~tried.stays)
        places, order_of, violated = tried.places[gone], tried.order_of[gone], tried.violated[gone]
        costs = self._costs(places, order_of, violated, len(tried.nodes))
        victims, budgets = [pods[place] for place in places.tolist()], violated.tolist()
        bounds = pairwise(_bounds(order_of, len(tried.nodes)))
        for order, (node, cost, (start, end)) in enumerate(zip(tried.nodes.tolist(), costs, bounds, strict=True)):
            if start == end:
                yield None
                continue
            violates = {self._protection.name(each) for each in budgets[start:end] if each >= 0} if cost[0] else ()
            equal = tuple([pods[place] for place in tied[order]]) if tied and order in tied else ()
            yield Candidate(names[node], tuple(victims[start:end]), tuple(sorted(violates)), cost, equal)

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
        """Return, by order, the places of the pods that are tied, and the groups whose order matters.

        A group is equally important pods of one node if only some of them stay. Such pods are tied if a choice among
        them makes no difference except for their names.
        """
        lower, rooms, protection = self._lower, self._rooms, self._protection
        ranks = lower.ranks[tried.places]
        is_mixed_rank = protection.is_mixed[tried.places]
        kinds = protection.kinds[tried.places]
        decides = rooms.deciding()[tried.places]
        at = np.flatnonzero(decides | (is_mixed_rank & (kinds > 0)))
        # Pods that violate a budget are put back before others of their rank.
        group = 2 * ((int(ranks.max(initial=0)) + 1) * tried.order_of + ranks) + (
            (tried.violated >= 0) & ~is_mixed_rank
        )
        at = at[np.argsort(group[at], kind="stable")]
        tied: dict[int, list[int]] = {}
        mixed: dict[int, list[Rows]] = {}
        if not len(at):
            return tied, mixed
        is_first = np.concatenate(([True], group[at][1:] != group[at][:-1]))
        starts = np.flatnonzero(is_first)
        stays = tried.stays[at]
        is_open = np.logical_or.reduceat(stays, starts) & ~np.logical_and.reduceat(stays, starts)
        differs = ~is_first & self._differs(tried.places[at], is_mixed_rank[at], kinds[at], decides[at])
        is_mixed = np.logical_or.reduceat(differs, starts)
        ends = [*starts.tolist()[1:], len(at)]
        # If a pod shares a volume, others can stay after it that do not fit before it.
        is_mixed_anyway = is_mixed_rank[at[starts]] | np.logical_or.reduceat(
            rooms.shares_volumes[tried.places[at]], starts
        )
        chosen = np.flatnonzero(is_open | (is_mixed & is_mixed_anyway))
        for number in chosen.tolist():
            places = np.sort(tried.places[at[starts[number] : ends[number]]])
            order = int(tried.order_of[at[starts[number]]])
            if is_mixed[number]:
                mixed.setdefault(order, []).append(places)
            else:
                tied.setdefault(order, []).extend(places.tolist())
        return tied, mixed

    def _differs(self, places: Rows, is_mixed_rank: Mask, kinds: Column, decides: Mask) -> Mask:
        """Return whether each pod differs from the one before it in what kube-scheduler reads."""
        used, pods = self._rooms.used[:, places], self._lower.pods
        found = np.zeros(len(places), dtype=np.bool_)
        found[1:] = (used[:, 1:] != used[:, :-1]).any(axis=0)
        found[1:] |= is_mixed_rank[1:] & ((kinds[1:] != kinds[:-1]) | (decides[1:] != decides[:-1]))
        if self._rooms.has_volumes.any():
            volumes = np.array([id(pods[place].volumes) for place in places.tolist()])
            counts = self._rooms.has_volumes[places]
            found[1:] |= (counts[1:] | counts[:-1]) & (volumes[1:] != volumes[:-1])
        return found


@cache
def _permutations(count: int) -> Rows:
    return np.array([*permutations(range(count))], dtype=np.intp)


def _bounds(order_of: Rows, count: int) -> list[int]:
    """Return the first entry of each of `count` orders, and the number of entries."""
    found: list[int] = np.searchsorted(order_of, np.arange(count + 1)).tolist()
    return found
