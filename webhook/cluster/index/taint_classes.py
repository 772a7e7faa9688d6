"""The distinct sets of taints of nodes: a cluster has few of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from webhook.kube.pod.taints import Taint


@dataclass(frozen=True, slots=True)
class TaintClasses:
    """The distinct sets of taints: `classes[class_of[row]]` are those of the node in `row`."""

    classes: tuple[tuple[Taint, ...], ...]
    class_of: NDArray[np.intp]
    distinct: frozenset[Taint] = frozenset()
    """All taints of all classes."""

    @classmethod
    def of(cls, taints: Iterable[tuple[Taint, ...]]) -> "TaintClasses":
        """Return the classes of nodes with these taints, in rows."""
        classes: dict[tuple[Taint, ...], int] = {}
        class_of = [classes.setdefault(each, len(classes)) for each in taints]
        distinct = frozenset(taint for each in classes for taint in each)
        return cls(tuple(classes), np.array(class_of, dtype=np.intp), distinct)

    def classes_with(self, taints: Iterable[Taint]) -> list[bool]:
        """Return for each class true if it has one of `taints`."""
        wanted = frozenset(taints)
        return [not wanted.isdisjoint(each) for each in self.classes]
