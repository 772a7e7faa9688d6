"""Index of the running pods: the pods that a selector matches, and their nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.layered_pod_classes import LayeredPodClasses
from webhook.cluster.index.pod_classes import CarriedTerm, PodClasses, PodIdentity
from webhook.cluster.index.pod_term import Labels
from webhook.kube.deadline import Expired, never
from webhook.kube.label_selector import LabelSelector

Codes = NDArray[np.int32]


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


@dataclass(frozen=True, slots=True, eq=False)
class RunningPods:
    """The running pods by class and row of the node. `classes` numbers pods that are equal to every selector.

    The carriers are the pods with pod affinity terms of their own. Successive tables share one `classes`, which only
    grows, so the cost of the next table grows with the changes. `class_count` is the number of classes when this table
    was made, and the length of all its masks: another thread can add classes at any time.
    """

    classes: PodClasses
    class_count: int
    class_of: Codes
    row_of: Codes
    carrier_class_of: Codes
    carrier_row_of: Codes
    _last_selected: "list[_Selected]" = field(default_factory=list)
    """The last result of `rows_selected`. Most pending pods have the same term: the policy's bin-packing."""

    @classmethod
    def of(cls, nodes: Sequence[PodHolder]) -> "RunningPods":
        """Return the table of the pods of `nodes`, in rows."""
        classes = PodClasses()
        class_of = [classes.number(pod) for node in nodes for pod in node.pods]
        counts = [len(node.pods) for node in nodes]
        row_of = np.repeat(np.arange(len(nodes), dtype=np.int32), counts)
        return cls._table(classes, np.array(class_of, dtype=np.int32), row_of)

    def with_rows(self, nodes: Mapping[int, PodHolder]) -> "RunningPods":
        """Return the table with the pods of `nodes` in place of those in the same rows."""
        changed = np.fromiter(nodes, dtype=np.int32, count=len(nodes))
        stay = ~np.isin(self.row_of, changed)
        added = [(self.classes.number(pod), row) for row, node in nodes.items() for pod in node.pods]
        new = np.array(added, dtype=np.int32).reshape(-1, 2)
        return self._table(
            self.classes,
            np.concatenate((self.class_of[stay], new[:, 0])),
            np.concatenate((self.row_of[stay], new[:, 1])),
        )

    def with_added(self, pods: Mapping[int, Sequence[PodIdentity]]) -> "RunningPods":
        """Return the table with more `pods` in their rows."""
        added = [(self.classes.number(pod), row) for row, each in pods.items() for pod in each]
        class_of, row_of = np.array(added, dtype=np.int32).reshape(-1, 2).T
        count = len(self.classes)
        carriers = np.flatnonzero(self.classes.carry_terms(count)[class_of])
        return RunningPods(
            self.classes,
            count,
            np.concatenate((self.class_of, class_of)),
            np.concatenate((self.row_of, row_of)),
            np.concatenate((self.carrier_class_of, class_of[carriers])),
            np.concatenate((self.carrier_row_of, row_of[carriers])),
        )

    def with_rows_moved(self, row_now: NDArray[np.int32]) -> "RunningPods":
        """Return the table with the pods of row n in row `row_now[n]`; -1 removes them."""
        rows = row_now[self.row_of]
        stay = rows >= 0
        return self._table(self.classes, self.class_of[stay], rows[stay])

    def isolated(self) -> "RunningPods":
        """Return the same table with classes of its own, so that pods that never run leave no class behind."""
        return replace(self, classes=self.classes.copy(), _last_selected=[])

    def layered(self) -> "RunningPods":
        """Return the same table for showing further pods: their classes are not added to those of this one."""
        return replace(self, classes=LayeredPodClasses(self.classes, self.class_count), _last_selected=[])

    @property
    def has_terms(self) -> bool:
        """Return true if a pod has pod affinity terms of its own."""
        return len(self.carrier_class_of) > 0

    @property
    def term_keys(self) -> frozenset[str]:
        """Return the label keys in the selectors of these terms; it can contain keys of removed pods."""
        return self.classes.term_keys if self.has_terms else frozenset()

    @property
    def is_fragmented(self) -> bool:
        """Return true if most classes belong to pods that no longer exist."""
        return len(self.classes) > 2 * len(self.class_of) + 1000

    @classmethod
    def none(cls) -> "RunningPods":
        """Return the table without pods."""
        return cls.of(())

    @classmethod
    def _table(cls, classes: PodClasses, class_of: Codes, row_of: Codes) -> "RunningPods":
        count = len(classes)
        carriers = np.flatnonzero(classes.carry_terms(count)[class_of])
        return cls(classes, count, class_of, row_of, class_of[carriers], row_of[carriers])

    def selected(
        self, namespaces: Iterable[str] | None, selector: LabelSelector | None, expired: Expired = never
    ) -> Mask:
        """Return a mask of the classes in one of `namespaces` (None: all) that `selector` selects.

        Raises:
            DeadlineNearError: `expired()` returned true.
        """
        return self.classes.selected(self.class_count, namespaces, selector, expired)

    def terminating(self) -> Mask:
        """Return a mask of the classes whose pods are being deleted."""
        return self.classes.terminating(self.class_count)

    @property
    def is_any_terminating(self) -> bool:
        """Return whether a class is that of pods that are being deleted."""
        return self.classes.is_any_terminating(self.class_count)

    def rows_of(self, selected: Mask) -> Codes:
        """Return the row of each pod whose class is `selected`, unordered, once for each pod."""
        if not selected.any():
            return self.row_of[:0]
        return self.row_of[selected.take(self.class_of)]

    def rows_selected(
        self,
        namespaces: frozenset[str] | None,
        selector: LabelSelector | None,
        expired: Expired = never,
        *,
        terminating: bool = True,
    ) -> Codes:
        """Return the row of each pod in one of `namespaces` (None: all) that `selector` selects.

        Without `terminating`, pods that are being deleted are left out.

        Raises:
            DeadlineNearError: `expired()` returned true.
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
        """Return the row of each pod that carries a term, and how many times it does."""
        times = np.bincount(carried.numbers(), minlength=self.class_count)
        of_pods = times[self.carrier_class_of]
        found = np.flatnonzero(of_pods)
        return self.carrier_row_of[found], of_pods[found]
