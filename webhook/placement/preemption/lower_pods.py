"""The pods of lower priority on some nodes, in kube-scheduler's order of importance."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from webhook.cluster.index.labels import Mask
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
    which kube-scheduler takes in any order, here in that of the node or of `shuffle`; `is_tied` is true for them.
    `first` is the place of the first pod of each node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, MoreImportantVictim
    """

    def __init__(
        self, snapshot: Snapshot, rows: Sequence[int], priority: int, shuffle: Callable[[list[Any]], None] | None = None
    ) -> None:
        on_node: list[Any] = [snapshot.nodes[row].pods for row in rows]
        if shuffle:
            on_node = [[each for each in pods if each.priority < priority] for pods in on_node]
            for each in on_node:
                shuffle(each)
        pods = [*chain.from_iterable(on_node)]
        node_of = np.repeat(np.arange(len(rows)), [len(each) for each in on_node])
        priorities = self._column(map(_PRIORITY, pods), pods)
        lower = np.flatnonzero(priorities < priority)
        if len(lower) < len(pods):
            pods, node_of, priorities = [pods[at] for at in lower.tolist()], node_of[lower], priorities[lower]
        self._terms = (_TERMS,) if snapshot.pods.has_terms else ()
        starts = self._column(map(_STARTED, pods), pods)
        starts[starts == 0] = NOT_STARTED
        # A priority has 32 bits.
        order = np.lexsort((starts, (node_of << 33) - priorities))
        self.node_of: Rows = node_of
        self.first: Rows = np.searchsorted(node_of, np.arange(len(rows)))
        self.priorities, self.starts = priorities[order], starts[order]
        self.pods = [pods[at] for at in order.tolist()]
        columns = np.array((self.node_of, self.priorities, self.starts))
        is_next = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        self.ranks: Rows = np.cumsum(np.append([False], is_next))
        self.is_tied: Mask = ~(np.append([True], is_next) & np.append(is_next, [True]))

    @staticmethod
    def _column(values: Any, pods: Sequence[RunningPod]) -> Column:
        return np.fromiter(values, np.int64, len(pods))

    def requested(self, resource: str) -> Column:
        """Return the amount of `resource` that each pod requests."""
        try:
            amounts = self._column(map(itemgetter(resource), map(_REQUESTS, self.pods)), self.pods)
        except (KeyError, OverflowError):
            requests = map(_REQUESTS, self.pods)
            amounts = np.array([min(each.get(resource, 0), LARGEST_AMOUNT) for each in requests], dtype=np.int64)
        return np.minimum(amounts, LARGEST_AMOUNT)

    @cached_property
    def kinds(self) -> tuple[Rows, list[RunningPod]]:
        """Return the kind of each pod, and a pod of each kind. Pods of a kind share namespace, labels and terms."""
        namespaces = [*map(_NAMESPACE, self.pods)]
        is_one_namespace = namespaces.count(namespaces[0]) == len(namespaces)
        kinds: Rows = np.zeros(len(self.pods), dtype=np.intp)
        for shared in (_LABELS, *self._terms) if is_one_namespace else (_LABELS, _NAMESPACE, *self._terms):
            # A column of numbers: tuples of all pods would set off the garbage collector.
            distinct, number = np.unique(self._column(map(id, map(shared, self.pods)), self.pods), return_inverse=True)
            is_first = shared is _LABELS
            kinds = number if is_first else np.unique(kinds * len(distinct) + number, return_inverse=True)[1]
        examples = np.empty(int(kinds.max()) + 1, dtype=np.intp)
        examples[kinds] = np.arange(len(kinds))
        return kinds, [self.pods[at] for at in examples.tolist()]

    def counted(self, count: Callable[[RunningPod], int]) -> Column:
        """Return the `count` of each pod, which depends only on its namespace, its labels and its terms."""
        kinds, examples = self.kinds
        return np.array([count(each) for each in examples], dtype=np.int64)[kinds]

    def on_nodes(self, values: Column) -> Column:
        """Return the sum for each node of `values`, which has one for each pod."""
        sums: Column = np.add.reduceat(values, self.first)
        return sums
