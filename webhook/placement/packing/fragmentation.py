"""The cards that the typical pods of a cluster can use, and the part of them that a placement takes away."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.snapshot import LARGEST_AMOUNT, Column
from webhook.placement.packing.typical_pods import Mix, most_frequent

Numbers = NDArray[np.float64]
_Cells = tuple[NDArray[np.intp], ...]


class Free(NamedTuple):
    """The free amounts of nodes, as columns: thousandths of a core, bytes, and cards of one resource."""

    milli_cpu: Column
    memory_bytes: Column
    cards: Column


class _RequestTable:
    """A table over the distinct requests of a non-empty mix. A cell is a combination of one request for each resource.

    The pods that fit on a node are those whose requests do not exceed its free amounts. So a sum over all pods that fit
    is a cumulative sum over the table, which needs one lookup for a node.
    """

    def __init__(self, mix: Mix) -> None:
        kinds = most_frequent(mix)
        self.requests = [
            np.array([min(each, LARGEST_AMOUNT) for each in column]) for column in zip(*kinds, strict=True)
        ]
        weights = np.array(list(kinds.values()), dtype=np.float64)
        self.shares: Numbers = weights / weights.sum()
        # The first cell of each axis is for nodes with less than the smallest request.
        self._axes = [np.unique(column) for column in self.requests]
        self._shape = tuple(len(axis) + 1 for axis in self._axes)
        self.wanted = self.cells(self.requests)

    def cells(self, amounts: Sequence[Column]) -> _Cells:
        return tuple(
            np.searchsorted(axis, column, side="right") for axis, column in zip(self._axes, amounts, strict=True)
        )

    def of_fitting(self, values: Numbers) -> Numbers:
        """Return for each cell the sum of `values` over the kinds of pods that fit there."""
        sums = self._sums(self.wanted, values)
        for axis in range(len(self._shape)):
            np.cumsum(sums, axis=axis, out=sums)
        return sums

    def usable_cards(self, cells: _Cells, cards: Column) -> Numbers:
        """Return for each cell the total of `cards`, those of nodes in `cells`, that pods with its requests can use."""
        usable = self._sums(cells, cards)
        for axis in range(len(self._shape)):
            usable = np.flip(np.cumsum(np.flip(usable, axis), axis=axis), axis)
        return usable

    def _sums(self, cells: _Cells, amounts: NDArray[Any]) -> Numbers:
        flat = np.ravel_multi_index(cells, self._shape)
        sums = np.bincount(flat, amounts.astype(np.float64), math.prod(self._shape))
        return sums.reshape(self._shape).astype(np.float64, copy=False)


class Fragmentation:
    """The value of free cards for a mix of typical pods.

    A typical pod can use all free cards of a node that has enough CPU, memory and cards for it. The value of all usable
    cards of a kind of pod is the kind's share of the mix, divided equally among the cards. So the fewer cards a kind
    can use, the more each of them is worth.
    """

    def __init__(self, mix: Mix, free: Free) -> None:
        self._requests = table = _RequestTable(mix)
        cells = table.cells(free)
        usable = table.usable_cards(cells, free.cards)[table.wanted]
        self._table = table.of_fitting(table.shares / np.maximum(usable, table.requests[2]))
        self.values = free.cards * self._table[cells]
        """The share of the cards that typical pods can use which is on each node: the expected share over the mix."""

    def value(self, free: Free) -> Numbers:
        """Return the values that nodes would have with the amounts `free`."""
        values = np.zeros(len(free.cards))
        rows = np.flatnonzero(free.cards > 0)
        cells = self._requests.cells([column[rows] for column in free])
        values[rows] = free.cards[rows] * self._table[cells]
        return values


def fitting_shares(mix: Mix, free: Free) -> Numbers:
    """Return for each node the share of the pods of `mix` (not empty) that fit into its free amounts, `free`."""
    table = _RequestTable(mix)
    shares: Numbers = table.of_fitting(table.shares)[table.cells(free)]
    return shares
