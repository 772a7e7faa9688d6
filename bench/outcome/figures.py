"""The figures of a replay: what is allocated, what could not be placed, and what is left."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.outcome.arrivals import Shape, Trace, TracePod

Amounts = NDArray[np.float64]


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

        `free` has a row of free cores (thousandths), MiB and GPUs for each node. A shape can use all GPUs of a node
        that can take it, and none of another node.
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


@dataclass(frozen=True, slots=True)
class Figures:
    """The state once pods have requested `asked` percent of the GPUs.

    `allocated` and `fragmented` are percent of all GPUs. `fragmented` are the free GPUs that a pod of the trace cannot
    use, on average. `requested` and `unplaced` count pods by number of GPUs. `unplaceable` are the pods with 8 GPUs
    that no scheduler could have placed: too few nodes are large enough, even without other pods.
    """

    asked: float
    allocated: float
    fragmented: float
    empty_nodes: int
    requested: Mapping[str, int]
    unplaced: Mapping[str, int]
    unplaceable: int

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return asdict(self)


def figures(trace: Trace, mix: Mix, asked: float, pods: Sequence[TracePod], nodes: Mapping[str, str]) -> Figures:
    """Return the figures for `pods`; `nodes` has the node of each pod that was placed."""
    free = dict(trace.capacity)
    for pod in pods:
        if node := nodes.get(pod.name):
            free[node] = free[node].without(pod.shape)
    rows = np.array(list(free.values()), dtype=np.float64)
    requested = Counter(str(pod.shape.gpus) for pod in pods)
    unplaced = Counter(str(pod.shape.gpus) for pod in pods if pod.name not in nodes)
    return Figures(
        asked=round(100 * asked, 1),
        allocated=round(float(100 * (1 - rows[:, 2].sum() / trace.gpus)), 3),
        fragmented=round(float(100 * mix.fragmentation(rows).sum() / trace.gpus), 3),
        empty_nodes=sum(free[name] == capacity for name, capacity in trace.capacity.items()),
        requested={size: requested[size] for size in sorted(requested)},
        unplaced={size: unplaced[size] for size in sorted(requested)},
        unplaceable=unplaceable([pod.shape for pod in pods if pod.shape.gpus == 8], list(trace.capacity.values())),
    )


def unplaceable(pods: Sequence[Shape], nodes: Sequence[Shape]) -> int:
    """Return the number of `pods` without a node if each node takes at most one, in the best assignment.

    This is the size of a maximum matching, found with augmenting paths. The nodes have fewer GPUs than two pods.
    """
    pod_of: dict[int, int] = {}

    def assign(pod: int, tried: set[int]) -> bool:
        for node in fitting[pod]:
            if node not in tried:
                tried.add(node)
                if node not in pod_of or assign(pod_of[node], tried):
                    pod_of[node] = pod
                    return True
        return False

    fitting = [[number for number, node in enumerate(nodes) if pod.fits(node)] for pod in pods]
    return sum(not assign(pod, set()) for pod in range(len(pods)))
