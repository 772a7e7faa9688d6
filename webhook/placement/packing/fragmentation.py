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


class Fragmentation:
    """The value of free cards for a mix of typical pods.

    A typical pod can use all free cards of a node that has enough CPU, memory and cards for it. Each kind of pod
    values its usable cards equally, and all of them together at its share of the mix. So the fewer cards a kind can
    still use, the more each of them is worth.

    The pods that fit on a node with certain free amounts have requests that are not greater. So their values are sums
    over a table of the distinct requests, which answers for any node with one look-up.
    """

    def __init__(self, mix: Mix, free: Free) -> None:
        """Value the cards of nodes with the amounts `free` for `mix`, which is not empty."""
        kinds = most_frequent(mix)
        requests = [np.array([min(each, LARGEST_AMOUNT) for each in column]) for column in zip(*kinds, strict=True)]
        shares = np.array(list(kinds.values()), dtype=np.float64)
        # The first cell of each axis is for nodes with less than the smallest request.
        self._axes = [np.unique(column) for column in requests]
        self._shape = tuple(len(axis) + 1 for axis in self._axes)
        cells, wanted = self._cells(free), self._cells(requests)
        weights = shares / shares.sum() / np.maximum(self._usable_cards(cells, free.cards)[wanted], requests[2])
        self._table = self._sums(wanted, weights)
        for axis in range(len(self._shape)):
            np.cumsum(self._table, axis=axis, out=self._table)
        self.values = free.cards * self._table[cells]
        """The share of the cards that typical pods can use which is on each node: the expected share over the mix."""

    def value(self, free: Free) -> Numbers:
        """Return the values of nodes if they had the amounts `free`."""
        values = np.zeros(len(free.cards))
        rows = np.flatnonzero(free.cards > 0)
        values[rows] = free.cards[rows] * self._table[self._cells([column[rows] for column in free])]
        return values

    def _cells(self, amounts: Sequence[Column]) -> _Cells:
        return tuple(
            np.searchsorted(axis, column, side="right") for axis, column in zip(self._axes, amounts, strict=True)
        )

    def _usable_cards(self, cells: _Cells, cards: Column) -> Numbers:
        """Return for each cell of the table the number of cards that a pod with these requests can use."""
        usable = self._sums(cells, cards)
        for axis in range(len(self._shape)):
            usable = np.flip(np.cumsum(np.flip(usable, axis), axis=axis), axis)
        return usable

    def _sums(self, cells: _Cells, amounts: NDArray[Any]) -> Numbers:
        """Return the table with the sum of `amounts` in each cell."""
        flat = np.ravel_multi_index(cells, self._shape)
        sums = np.bincount(flat, amounts.astype(np.float64), math.prod(self._shape))
        return sums.reshape(self._shape).astype(np.float64, copy=False)
