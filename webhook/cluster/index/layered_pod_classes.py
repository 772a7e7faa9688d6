"""Classes of pods in addition to those of a snapshot, for pods that a working snapshot shows as running."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_classes import CarriedTerm, PodClasses
from webhook.cluster.index.pod_term import Labels
from webhook.kube.deadline import Expired, never
from webhook.kube.selectors import LabelSelector


class LayeredPodClasses(PodClasses):
    """The first `count` classes of `base`, and further classes that are not added to `base`.

    Without this layer, admitted pods that never run would leave their classes in `base`, which successive snapshots
    share.
    """

    def __init__(self, base: PodClasses, count: int) -> None:
        super().__init__()
        self._base = base
        self._first = self._count = count

    @property
    def own_count(self) -> int:
        """Return the number of further classes."""
        return self._count - self._first

    @property
    def term_keys(self) -> frozenset[str]:
        """Return the label keys in the selectors of carried terms."""
        return self._base.term_keys | self._term_keys

    @property
    def term_count(self) -> int:
        """Return the number of distinct carried terms in `base` and in this layer."""
        return self._base.term_count + len(self._carried)

    @property
    def repels(self) -> bool:
        """Return whether a class has required anti-affinity."""
        return self._base.repels or self._repels

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of the pods."""
        return self._base.namespaces | super().namespaces

    def known(self, key: object) -> int | None:
        """Return the class with `key`, or None if there is none."""
        number = self._base.known(key)
        return number if number is not None and number < self._first else super().known(key)

    def carry_terms(self, count: int) -> Mask:
        """Return a mask of the first `count` classes that have terms of their own."""
        found = super().carry_terms(count)
        found[: self._first] = self._base.carry_terms(self._first)
        return found

    def terminating(self, count: int) -> Mask:
        """Return a mask of the first `count` classes that are being deleted."""
        found = super().terminating(count)
        found[: self._first] = self._base.terminating(self._first)
        return found

    def is_any_terminating(self, count: int) -> bool:
        """Return whether one of the first `count` classes is being deleted, which is rare."""
        return self._base.is_any_terminating(self._first) or super().is_any_terminating(count)

    def selected(
        self, count: int, namespaces: Iterable[str] | None, selector: LabelSelector | None, expired: Expired = never
    ) -> Mask:
        """Return a mask of the selected classes, as `PodClasses.selected`."""
        names = None if namespaces is None else tuple(namespaces)
        found = super().selected(count, names, selector, expired)
        found[: self._first] = self._base.selected(self._first, names, selector, expired)
        return found

    def carried(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[CarriedTerm]:
        """Yield the terms that select a pod with `labels` in `namespace`, which has `namespace_labels`."""
        yield from map(self._of_first, self._base.carried(namespace, namespace_labels, labels))
        yield from super().carried(namespace, namespace_labels, labels)

    def carried_by_namespace_labels(self, labels: Labels) -> Iterator[CarriedTerm]:
        """Yield the terms that select a pod with `labels` in namespaces that they select by label."""
        yield from map(self._of_first, self._base.carried_by_namespace_labels(labels))
        yield from super().carried_by_namespace_labels(labels)

    def _of_first(self, carried: CarriedTerm) -> CarriedTerm:
        """Return the term with only the first `count` classes of `base`, because `base` can have more classes now."""
        return carried._replace(classes=carried.classes[: bisect_left(carried.classes, self._first)])
