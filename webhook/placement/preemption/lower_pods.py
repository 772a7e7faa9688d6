"""The pods of lower priority on some nodes, in kube-scheduler's order of importance."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.selectors import LabelSelector

NOT_STARTED = 2**62
"""The start of a pod that has not started: after all others."""

_PRIORITY = attrgetter("priority")
_STARTED = attrgetter("started_seconds")
_NAMESPACE = attrgetter("namespace")
_LABELS = attrgetter("labels")
_TERMS = attrgetter("terms")
_REQUESTS = attrgetter("requests")
# It takes as long to match 2,000 pods with selectors as to read so many labels of each.
_MANY_LABELS, _MOST_KEYS = 2000, 16


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
    def _column(values: Any, pods: Sequence[Any]) -> Column:
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
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of the pods."""
        return frozenset(map(_NAMESPACE, self.pods))

    def kinds(self, selectors: Iterable[LabelSelector | None]) -> tuple[Rows, list[RunningPod]]:
        """Return the kind of each pod, and a pod of each kind.

        Pods of a kind are in one namespace and equal for all `selectors`, and all of them have labels, or none has.
        """
        kinds, at = self._distinct(self._column(map(id, map(_LABELS, self.pods)), self.pods))
        if len(at) > _MANY_LABELS:
            # Most pods have labels of their own, such as the index of the pod.
            kinds = self._by_label([self.pods[each].labels for each in at.tolist()], selectors)[kinds]
        if len(self.namespaces) > 1:
            number = {each: at for at, each in enumerate(self.namespaces)}
            kinds = kinds * len(number) + self._column(map(number.__getitem__, map(_NAMESPACE, self.pods)), self.pods)
        kinds, at = self._distinct(kinds)
        return kinds, [self.pods[each] for each in at.tolist()]

    def _by_label(self, labels: Sequence[Mapping[str, str]], selectors: Iterable[LabelSelector | None]) -> Rows:
        """Return a number for each of `labels` that is equal for those that `selectors` do not distinguish."""
        read: dict[str, set[str]] = {}
        for requirement in chain.from_iterable(each or () for each in selectors):
            read.setdefault(requirement.key, set()).update(requirement.values)
        if len(read) > _MOST_KEYS:
            return np.arange(len(labels))
        found: Rows = self._column(map(bool, labels), labels)
        for key, values in read.items():
            known: dict[str | None, int] = {value: number for number, value in enumerate((None, *values))}
            here = map(known.get, map(methodcaller("get", key), labels), repeat(len(known)))
            found = self._distinct(found * (len(known) + 1) + self._column(here, labels))[0]
        return found

    def counted(
        self, count: Callable[[RunningPod], int], selectors: Iterable[LabelSelector | None] | None = None
    ) -> Column:
        """Return the `count` of each pod, which depends only on its namespace and on which of `selectors` select it.

        Without `selectors`, it depends on the terms of the pod.
        """
        if selectors is None:
            kinds, at = self._distinct(self._column(map(id, map(_TERMS, self.pods)), self.pods))
            examples = [self.pods[each] for each in at.tolist()]
        else:
            kinds, examples = self.kinds(selectors)
        return np.array([count(each) for each in examples], dtype=np.int64)[kinds]

    @staticmethod
    def _distinct(values: Column) -> tuple[Rows, Rows]:
        """Return the number of each value, and the place of each number."""
        if values.min() >= 0 and values.max() < 8 * len(values):
            is_there = np.bincount(values) > 0
            numbers: Rows = (np.cumsum(is_there) - 1)[values]
        else:
            numbers = np.unique(values, return_inverse=True)[1]
        places = np.empty(int(numbers.max()) + 1, dtype=np.intp)
        places[numbers] = np.arange(len(numbers))
        return numbers, places

    def on_nodes(self, values: Column) -> Column:
        """Return the sum for each node of `values`, which has one for each pod."""
        sums: Column = np.add.reduceat(values, self.first)
        return sums
