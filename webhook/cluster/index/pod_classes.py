"""Numbered classes of pods that no selector can distinguish, and the pod affinity terms of these pods."""

from array import array
from collections.abc import Iterable, Iterator
from copy import copy
from threading import Lock
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.class_codes import ClassCodes
from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_term import Labels, PodTerm, PodTerms
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.selectors import LabelRequirement, LabelSelector, selector_matches

# The kind of a running pod's term, by its effect on a pod that the term selects: `anti_required` excludes the pod from
# the domain, `required` attracts it, `preferred` attracts or repels it with the weight of the term.
TermKind = Literal["anti_required", "required", "preferred"]


class PodIdentity(Protocol):
    """The properties of a pod that selectors and affinity read."""

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""

    @property
    def labels(self) -> Labels:
        """Return the labels of the pod."""

    @property
    def is_terminating(self) -> bool:
        """Return true if the pod is being deleted."""

    @property
    def terms(self) -> PodTerms:
        """Return the pod affinity terms of the pod."""


class CarriedTerm(NamedTuple):
    """A pod affinity term of running pods: kind, weight, and the classes of these pods, once for each occurrence."""

    kind: TermKind
    weight: int
    term: PodTerm
    classes: "array[int]"

    def numbers(self) -> NDArray[np.int32]:
        """Return a copy of the classes."""
        # The slice copies while the thread holds the GIL. NumPy may release it while it reads `classes` itself, and
        # an array whose buffer is exported cannot grow: appending to it in another thread would fail.
        return np.frombuffer(self.classes[:], dtype=np.intc)


class PodClasses:
    """Numbers for classes of pods. Pods of one class are equal in namespace, labels, deletion and pod affinity terms.

    A class never changes and is never deleted, so tables of different moments can share the classes. Any thread can
    number pods while others read. `count` is the length of a mask. A table passes the number of classes at the time
    when it was made, so all its masks have the same length.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._numbers: dict[object, int] = {}
        self._namespaces = ClassCodes()
        self._labels: dict[str, ClassCodes] = {}
        self._terminating = ClassCodes()
        self._carry_terms = ClassCodes()
        self._carried: dict[tuple[TermKind, int, PodTerm], CarriedTerm] = {}
        # The index of the terms that can select a pod: a term that requires one of some values of a label is filed
        # under each value, other terms under None.
        self._filed: dict[tuple[str, str] | None, list[CarriedTerm]] = {}
        self._term_keys: frozenset[str] = frozenset()
        self._repels = False

    def __len__(self) -> int:
        return self._count

    @property
    def term_keys(self) -> frozenset[str]:
        """Return the label keys in the selectors of carried terms."""
        return self._term_keys

    @property
    def term_count(self) -> int:
        """Return the number of distinct carried terms."""
        return len(self._carried)

    @property
    def repels(self) -> bool:
        """Return whether a class has required anti-affinity."""
        return self._repels

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of the pods."""
        return frozenset(self._namespaces.values)

    def copy(self) -> "PodClasses":
        """Return a copy with the same classes and numbers; classes that are added to one are not added to the other."""
        with self._lock:
            other = copy(self)
            carried = {key: found._replace(classes=found.classes[:]) for key, found in self._carried.items()}
            vars(other).update(
                _lock=Lock(),
                _numbers=dict(self._numbers),
                _namespaces=self._namespaces.copy(),
                _labels={label: codes.copy() for label, codes in self._labels.items()},
                _terminating=self._terminating.copy(),
                _carry_terms=self._carry_terms.copy(),
                _carried=carried,
                _filed={
                    place: [carried[found.kind, found.weight, found.term] for found in filed]
                    for place, filed in self._filed.items()
                },
            )
            return other

    def known(self, key: object) -> int | None:
        """Return the class with `key`, or None if there is none."""
        return self._numbers.get(key)

    def number(self, pod: PodIdentity) -> int:
        """Return the class of `pod`, which is added if it is new."""
        # One tuple: there are as many classes as controllers.
        key = (pod.namespace, pod.is_terminating, pod.terms, *pod.labels, *pod.labels.values())
        known = self.known(key)
        if known is not None:
            return known
        with self._lock:
            known = self.known(key)
            return self._add(key, pod) if known is None else known

    def _add(self, key: object, pod: PodIdentity) -> int:
        # The number is reserved first and published last: other threads see a complete class or none, and if adding
        # fails, no pod has the number.
        number = self._count
        self._count += 1
        self._namespaces.put(number, pod.namespace)
        for label, value in pod.labels.items():
            if label not in self._labels:
                self._labels[label] = ClassCodes()
            self._labels[label].put(number, value)
        if pod.is_terminating:
            self._terminating.put(number, "")
        if pod.terms:
            self._carry_terms.put(number, "")
            self._carry(number, pod.terms)
        self._numbers[key] = number
        return number

    def _carry(self, number: int, terms: PodTerms) -> None:
        self._repels = self._repels or bool(terms.anti_required)
        for term in terms.anti_required:
            self._file("anti_required", 0, term).append(number)
        for term in terms.required:
            self._file("required", 0, term).append(number)
        for weight, term in terms.preferred:
            self._file("preferred", weight, term).append(number)

    def _file(self, kind: TermKind, weight: int, term: PodTerm) -> "array[int]":
        known = self._carried.get((kind, weight, term))
        if known is None:
            known = self._carried[kind, weight, term] = CarriedTerm(kind, weight, term, array("i"))
            for place in _places(term.selector):
                self._filed.setdefault(place, []).append(known)
            self._term_keys |= {requirement.key for requirement in term.selector or ()}
        return known.classes

    def carry_terms(self, count: int) -> Mask:
        """Return a mask of the first `count` classes that have terms of their own."""
        return self._carry_terms.present(count)

    def terminating(self, count: int) -> Mask:
        """Return a mask of the first `count` classes that are being deleted."""
        return self._terminating.present(count)

    def is_any_terminating(self, count: int) -> bool:
        """Return whether one of the first `count` classes is being deleted, which is rare."""
        return self._terminating.is_any_present(count)

    def selected(
        self, count: int, namespaces: Iterable[str] | None, selector: LabelSelector | None, expired: Expired = never
    ) -> Mask:
        """Return a mask of the first `count` classes in `namespaces` (None means all) that `selector` selects."""
        if selector is None:
            return np.zeros(count, dtype=np.bool_)
        found = np.ones(count, dtype=np.bool_) if namespaces is None else self._namespaces.among(namespaces, count)
        for requirement in in_time(selector, expired):
            found &= self._satisfying(requirement, count)
        return found

    def _satisfying(self, requirement: LabelRequirement, count: int) -> Mask:
        column = self._labels.get(requirement.key)
        absent = requirement.matches({})
        if column is None:
            return np.full(count, absent, dtype=np.bool_)
        if requirement.operator in ("In", "NotIn") and requirement.values:
            among = column.among(requirement.values, count)
            return ~among if absent else among
        if not requirement.values and requirement.operator in ("Exists", "DoesNotExist"):
            present = column.present(count)
            return ~present if absent else present
        return np.zeros(count, dtype=np.bool_)

    def carried(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[CarriedTerm]:
        """Yield the terms that select a pod with `labels` in `namespace`, which has `namespace_labels`."""
        for found in self._filed_for(labels):
            if found.term.matches(namespace, namespace_labels, labels):
                yield found

    def carried_by_namespace_labels(self, labels: Labels) -> Iterator[CarriedTerm]:
        """Yield the terms that select a pod with `labels` in namespaces that they select by label."""
        for found in self._filed_for(labels):
            if found.term.chooses_namespaces and selector_matches(found.term.selector, labels):
                yield found

    def _filed_for(self, labels: Labels) -> Iterator[CarriedTerm]:
        for place in (None, *labels.items()):
            yield from self._filed.get(place, ())


def _places(selector: LabelSelector | None) -> Iterable[tuple[str, str] | None]:
    """Return the labels under which a term with `selector` is indexed; a pod that it selects has one of them."""
    if selector is None:
        return ()
    for key, operator, values in selector:
        if operator == "In":
            return {(key, value) for value in values}
    return (None,)
