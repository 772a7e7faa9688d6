"""The figures of a replay: what is allocated, what could not be placed, and what is left."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.outcome.arrivals import Trace, TracePod
from bench.outcome.fragmentation import Shape
from placement_planner.simulation.outcome import Mix


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
