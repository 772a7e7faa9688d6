"""The pods of lower priority on some nodes, in kube-scheduler's order of importance."""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot

NOT_STARTED = 2**62
"""The start of a pod that has not started: after all others."""

_PRIORITY = attrgetter("priority")
_STARTED = attrgetter("started_seconds")
_NAMESPACE = attrgetter("namespace")
_LABELS = attrgetter("labels")
_TERMS = attrgetter("terms")
_REQUESTS = attrgetter("requests")


class LowerPods:
    """The pods of a priority below `priority` on the nodes in `rows`, node by node, the most important first.

    Each node must have such a pod. All columns have one value for each pod: `node_of` is the number of its node among
    `rows`, `starts` are Unix seconds or NOT_STARTED. Pods of equal `ranks` are equally important pods of one node,
    which kube-scheduler takes in any order, here in that of the node or of `shuffle`. `first` is the place of the
    first pod of each node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, MoreImportantVictim
    """

    def __init__(
        self, snapshot: Snapshot, rows: Sequence[int], priority: int, shuffle: Callable[[list[Any]], None] | None = None
    ) -> None:
        found: list[RunningPod] = []
        sizes = []
        for row in rows:
            lower = [each for each in snapshot.nodes[row].pods if each.priority < priority]
            if shuffle:
                shuffle(lower)
            found += lower
            sizes.append(len(lower))
        self._terms = (_TERMS,) if snapshot.pods.has_terms else ()
        self.node_of: Rows = np.repeat(np.arange(len(rows)), sizes)
        self.first: Rows = np.cumsum([0, *sizes])[:-1]
        priorities, starts = self._column(map(_PRIORITY, found), found), self._column(map(_STARTED, found), found)
        starts[starts == 0] = NOT_STARTED
        order = np.lexsort((starts, -priorities, self.node_of))
        self.priorities, self.starts = priorities[order], starts[order]
        self.pods = [found[at] for at in order.tolist()]
        columns = np.array((self.node_of, self.priorities, self.starts))
        self.ranks: Rows = np.cumsum(np.append([False], (columns[:, 1:] != columns[:, :-1]).any(axis=0)))

    @staticmethod
    def _column(values: Any, pods: Sequence[RunningPod]) -> Column:
        return np.fromiter(values, np.int64, len(pods))

    def requested(self, resource: str) -> Column:
        """Return the amount of `resource` that each pod requests."""
        requests = [*map(_REQUESTS, self.pods)]
        try:
            amounts = np.fromiter(map(itemgetter(resource), requests), np.int64, len(requests))
        except (KeyError, OverflowError):
            amounts = np.array([min(each.get(resource, 0), LARGEST_AMOUNT) for each in requests], dtype=np.int64)
        return np.minimum(amounts, LARGEST_AMOUNT)

    @cached_property
    def kinds(self) -> tuple[Rows, list[RunningPod]]:
        """Return the kind of each pod, and a pod of each kind. Pods of a kind share namespace, labels and terms."""
        kinds: Rows = np.zeros(len(self.pods), dtype=np.intp)
        for shared in (_NAMESPACE, _LABELS, *self._terms):
            # A column of numbers: tuples of all pods would set off the garbage collector.
            distinct, number = np.unique(self._column(map(id, map(shared, self.pods)), self.pods), return_inverse=True)
            kinds = kinds * len(distinct) + number
        _, examples, kinds = np.unique(kinds, return_index=True, return_inverse=True)
        return kinds, [self.pods[at] for at in examples.tolist()]

    def counted(self, count: Callable[[RunningPod], int]) -> Column:
        """Return the `count` of each pod, which depends only on its namespace, its labels and its terms."""
        kinds, examples = self.kinds
        return np.array([count(each) for each in examples], dtype=np.int64)[kinds]

    def on_nodes(self, values: Column) -> Column:
        """Return the sum for each node of `values`, which has one for each pod."""
        sums: Column = np.add.reduceat(values, self.first)
        return sums
