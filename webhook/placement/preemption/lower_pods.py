"""The pods of lower priority on some nodes, in kube-scheduler's order of importance."""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
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
    which kube-scheduler takes in any order, here as they run or as `shuffle` puts them. `first` is the place of the
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
        self.node_of: Rows = np.repeat(np.arange(len(rows)), sizes)
        self.first: Rows = np.cumsum([0, *sizes])[:-1]
        priorities, starts = self._column(map(_PRIORITY, found), found), self._column(map(_STARTED, found), found)
        starts[starts == 0] = NOT_STARTED
        order = np.lexsort((starts, -priorities, self.node_of))
        self.priorities, self.starts = priorities[order], starts[order]
        self.pods = [found[at] for at in order.tolist()]
        is_other = np.ones(len(order), dtype=np.bool_)
        for column in (self.node_of, self.priorities, self.starts):
            is_other[1:] &= column[1:] == column[:-1]
        is_other[1:] = ~is_other[1:]
        self.ranks: Rows = np.cumsum(is_other)

    @staticmethod
    def _column(values: Any, pods: Sequence[RunningPod]) -> Column:
        return np.fromiter(values, np.int64, len(pods))

    def requested(self, resource: str) -> Column:
        """Return the amount of `resource` that each pod requests."""
        amounts = [requests.get(resource, 0) for requests in map(_REQUESTS, self.pods)]
        return np.array([min(each, LARGEST_AMOUNT) for each in amounts] if max(amounts) > LARGEST_AMOUNT else amounts)

    @cached_property
    def kinds(self) -> tuple[Rows, list[RunningPod]]:
        """Return the kind of each pod, and a pod of each kind. Pods of a kind share namespace, labels and terms."""
        numbers: dict[tuple[str, int, int], int] = {}
        shared = zip(
            map(_NAMESPACE, self.pods), map(id, map(_LABELS, self.pods)), map(id, map(_TERMS, self.pods)), strict=True
        )
        kinds = [numbers.setdefault(key, len(numbers)) for key in shared]
        examples = dict(zip(kinds, self.pods, strict=True))
        return np.array(kinds, dtype=np.intp), [examples[number] for number in range(len(numbers))]

    def counted(self, count: Callable[[RunningPod], int]) -> Column:
        """Return the `count` of each pod, which depends only on its namespace, its labels and its terms."""
        kinds, examples = self.kinds
        return np.array([count(each) for each in examples], dtype=np.int64)[kinds]

    def on_nodes(self, values: Column) -> Column:
        """Return the sum for each node of `values`, which has one for each pod."""
        sums: Column = np.add.reduceat(values, self.first)
        return sums
