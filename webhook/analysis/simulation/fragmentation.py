"""Fragmentation of the free cards of a cluster, as the FGD paper measures it."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]


class Shape(NamedTuple):
    """The capacity of a node, or the request of a pod: CPU, memory, and cards, in any units that are used alike."""

    cpu: int
    memory: int
    gpus: int

    def fits(self, free: "Shape") -> bool:
        """Return whether a pod of this shape fits into `free`."""
        return self.cpu <= free.cpu and self.memory <= free.memory and self.gpus <= free.gpus

    def without(self, pod: "Shape") -> "Shape":
        """Return what is left with `pod` placed."""
        return Shape(self.cpu - pod.cpu, self.memory - pod.memory, self.gpus - pod.gpus)


class Mix:
    """The shapes of the pods that are to be expected, each with its share of the pods."""

    def __init__(self, shapes: Iterable[Shape], covered: float = 1.0) -> None:
        """Keep the most frequent shapes that are together at least the share `covered` of the pods."""
        counts = Counter(shapes)
        kept: list[tuple[Shape, int]] = []
        for shape, count in counts.most_common():
            if sum(number for _, number in kept) >= covered * counts.total():
                break
            kept.append((shape, count))
        self.shapes: Amounts = np.array([shape for shape, _ in kept], dtype=np.float64)
        numbers: Amounts = np.array([count for _, count in kept], dtype=np.float64)
        self.shares: Amounts = numbers / numbers.sum()

    def usable(self, free: Amounts) -> Amounts:
        """Return the free GPUs that each shape can use on each node: rows of nodes, columns of shapes.

        `free` has a row of free CPU, memory and GPUs for each node. A shape can use all GPUs of a node that can take
        it, and none of another node.
        """
        fits = (free[:, None, :] >= self.shapes).all(axis=2)
        usable: Amounts = free[:, 2, None] * fits
        return usable

    def fragmentation(self, free: Amounts) -> Amounts:
        """Return for each node the free GPUs that a pod of the mix cannot use, on average.

        Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023, section 3: the fragmentation of a node is the
        sum over the pods of a typical workload of their popularity times the GPUs that they cannot use.
        """
        unusable: Amounts = free[:, 2] - self.usable(free) @ self.shares
        return unusable
