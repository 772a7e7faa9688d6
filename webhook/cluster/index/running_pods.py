"""Index of the running pods: the pods that a selector matches, and their nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_classes import CarriedTerm, PodClasses, PodIdentity
from webhook.cluster.index.pod_rows import Codes, PodRows
from webhook.cluster.index.pod_term import Labels
from webhook.kube.deadline import Expired, never
from webhook.kube.selectors import LabelSelector


class PodHolder(Protocol):
    """A node with running pods."""

    @property
    def pods(self) -> Sequence[PodIdentity]:
        """Return the pods."""


class _Selected(NamedTuple):
    namespaces: frozenset[str] | None
    selector: LabelSelector | None
    terminating: bool
    rows: Codes


@dataclass(slots=True, eq=False)
class RunningPods:
    """The running pods by class and row of the node. Pods of one class are equal for every selector.

    A table is immutable, except for its subclass `ShownPods`. `carriers` are the pods with pod affinity terms of their
    own. Successive tables share one `classes`, which only grows, so the cost of the next table depends on the number of
    changes. `class_count` is the number of classes when this table was made and the length of all its masks, because
    another thread can add classes at any time.
    """

    classes: PodClasses
    class_count: int
    _pods: PodRows
    _carriers: PodRows
    _last_selected: "list[_Selected]" = field(default_factory=list)
    """The last result of `rows_selected`. Most pending pods have the same term: the policy's bin-packing."""

    @classmethod
    def of(cls, nodes: Sequence[PodHolder]) -> "RunningPods":
        """Return the table of the pods of `nodes`, in rows."""
        classes = PodClasses()
        class_of = [classes.number(pod) for node in nodes for pod in node.pods]
        row_of = np.repeat(np.arange(len(nodes), dtype=np.int32), [len(node.pods) for node in nodes])
        return cls._table(classes, np.array(class_of, dtype=np.int32), row_of)

    @property
    def pods(self) -> PodRows:
        """Return the pods."""
        return self._pods

    @property
    def carriers(self) -> PodRows:
        """Return the pods with pod affinity terms of their own."""
        return self._carriers

    def with_rows(self, nodes: Mapping[int, PodHolder]) -> "RunningPods":
        """Return the table with the pods in the rows of `nodes` replaced by those of `nodes`."""
        added, carriers = self._numbered((row, node.pods) for row, node in nodes.items())
        rows = [*nodes]
        return RunningPods(
            self.classes,
            len(self.classes),
            self.pods.with_rows(rows, added),
            self.carriers.with_rows(rows, carriers),
        )

    def with_added(self, pods: Mapping[int, Sequence[PodIdentity]]) -> "RunningPods":
        """Return the table with more `pods` in their rows."""
        added, carriers = self._numbered(pods.items())
        return RunningPods(
            self.classes, len(self.classes), self.pods.with_added(added), self.carriers.with_added(carriers)
        )

    def _numbered(
        self, pods: Iterable[tuple[int, Sequence[PodIdentity]]]
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the class and the row of each of `pods`, and the same for the carriers among them."""
        numbered = [((self.classes.number(pod), row), pod) for row, each in pods for pod in each]
        return [place for place, _ in numbered], [place for place, pod in numbered if pod.terms]

    def with_rows_moved(self, row_now: NDArray[np.int32]) -> "RunningPods":
        """Return the table with the pods of row n in row `row_now[n]`; -1 removes them."""
        rows = row_now[self.pods.row_of]
        stay = rows >= 0
        return self._table(self.classes, self.pods.class_of[stay], rows[stay])

    def isolated(self) -> "RunningPods":
        """Return the table with its own copy of the classes, so that pods that never run leave no classes behind."""
        return RunningPods(self.classes.copy(), self.class_count, self.pods, self.carriers)

    @property
    def has_terms(self) -> bool:
        """Return true if a pod has pod affinity terms of its own."""
        return len(self.carriers) > 0

    @property
    def term_keys(self) -> frozenset[str]:
        """Return the label keys in the selectors of the pods' affinity terms. Keys of removed pods can be included."""
        return self.classes.term_keys if self.has_terms else frozenset()

    @property
    def is_fragmented(self) -> bool:
        """Return true if most classes belong to pods that no longer exist."""
        return len(self.classes) > 2 * len(self.pods) + 1000

    @classmethod
    def _table(cls, classes: PodClasses, class_of: Codes, row_of: Codes) -> "RunningPods":
        count = len(classes)
        carriers = np.flatnonzero(classes.carry_terms(count)[class_of])
        return cls(classes, count, PodRows.of(class_of, row_of), PodRows.of(class_of[carriers], row_of[carriers]))

    def selected(
        self, namespaces: Iterable[str] | None, selector: LabelSelector | None, expired: Expired = never
    ) -> Mask:
        """Return a mask of the classes in one of `namespaces` (None means all) that `selector` selects."""
        return self.classes.selected(self.class_count, namespaces, selector, expired)

    def terminating(self) -> Mask:
        """Return a mask of the classes whose pods are being deleted."""
        return self.classes.terminating(self.class_count)

    @property
    def is_any_terminating(self) -> bool:
        """Return whether pods of a class are being deleted."""
        return self.classes.is_any_terminating(self.class_count)

    def rows_of(self, selected: Mask) -> Codes:
        """Return the row of each pod whose class is `selected`, unordered, once for each pod."""
        if not selected.any():
            return self.pods.row_of[:0]
        return self.pods.row_of[selected.take(self.pods.class_of)]

    def rows_selected(
        self,
        namespaces: frozenset[str] | None,
        selector: LabelSelector | None,
        expired: Expired = never,
        *,
        terminating: bool = True,
    ) -> Codes:
        """Return the row of each selected pod in `namespaces`, or in all of them if it is None.

        With `terminating`, pods that are being deleted are included.
        """
        for last in self._last_selected[:1]:
            if last[:3] == (namespaces, selector, terminating):
                return last.rows
        selected = self.selected(namespaces, selector, expired)
        rows = self.rows_of(selected if terminating else selected & ~self.terminating())
        # One step, since other threads read it.
        self._last_selected[:] = [_Selected(namespaces, selector, terminating, rows)]
        return rows

    def carried(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[CarriedTerm]:
        """Return the terms of running pods that select a pod with `labels` in `namespace`."""
        return self.classes.carried(namespace, namespace_labels, labels) if self.has_terms else iter(())

    def carrier_rows(self, carried: CarriedTerm) -> tuple[Codes, NDArray[np.int64]]:
        """Return the row of each pod that carries a term, and the number of times that the pod carries it."""
        times = np.bincount(carried.numbers(), minlength=self.class_count)
        of_pods = times[self.carriers.class_of]
        found = np.flatnonzero(of_pods)
        return self.carriers.row_of[found], of_pods[found]
