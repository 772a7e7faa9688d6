"""The orders in which kube-scheduler can put back equally important pods, which it sorts at random."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

from webhook.cluster.snapshot import Rows

# The most orders that are tried on a node.
_MOST_ORDERS = 24


def every_order(places: Rows, groups: Sequence[Rows], patterns: dict[tuple[Any, ...], Rows]) -> Rows | None:
    """Return each order of `places` in which the pods of `groups`, which are among them, can be.

    If there are too many, return None. `patterns` are the orders of other nodes.
    """
    if math.prod(min(math.factorial(min(len(each), 9)), 2 * _MOST_ORDERS) for each in groups) > _MOST_ORDERS:
        return None
    at = [np.searchsorted(places, group) for group in groups]
    key = (len(places), *map(np.ndarray.tobytes, at))
    if key not in patterns:
        patterns[key] = np.arange(len(places))[None]
        for group in at:
            permuted, before = group[_permutations(len(group))], patterns[key]
            patterns[key] = np.repeat(before, len(permuted), axis=0)
            patterns[key][:, group] = np.tile(permuted, (len(before), 1))
    return places[patterns[key]]


def in_one(orders: Mapping[int, Rows]) -> tuple[Rows, Rows, Rows]:
    """Return the pods in the `orders` of all nodes, the number of the order of each, and the node of each order."""
    counts = [len(each) for each in orders.values()]
    numbers = np.repeat([*orders], counts)
    widths = np.repeat([each.shape[1] for each in orders.values()], counts)
    places = np.concatenate([each.ravel() for each in orders.values()])
    return places, np.repeat(np.arange(len(numbers)), widths), numbers


@cache
def _permutations(count: int) -> Rows:
    return np.array([*permutations(range(count))], dtype=np.intp)
