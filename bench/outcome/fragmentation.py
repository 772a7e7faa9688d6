"""The policy of the FGD paper, to compare the configurations with."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from placement_planner.simulation.outcome import Amounts, Mix


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


def mix_of(shapes: Iterable[Shape], covered: float = 1.0) -> Mix:
    """Return the mix of the most frequent of `shapes` that are together at least the share `covered` of them."""
    counts = Counter(shapes)
    kept: list[tuple[Shape, int]] = []
    for shape, count in counts.most_common():
        if sum(number for _, number in kept) >= covered * counts.total():
            break
        kept.append((shape, count))
    return Mix(kept)


# The score of each node for a pod, from the free amounts of the nodes that can take it: a row of cores (thousandths),
# MiB and GPUs for each.
Scores = Callable[[Shape, Amounts], Amounts]


class Policy(NamedTuple):
    """A way to choose a node: the one with the highest score; of several the first one, or a random one."""

    scores: Scores
    takes_first: bool = False


def fgd(shapes: tuple[Shape, ...]) -> Policy:
    """Return fragmentation gradient descent as published, on whole GPUs, for a workload of pods with these shapes.

    The typical pods are the most frequent shapes that make up 95 % of the pods, with their cores and GPUs; memory does
    not count. The score is the sigmoid of the decrease of the fragmentation, as an integer of at most 100. Of nodes
    with equal scores the first by name is taken.

    Source: github.com/hkust-adsl/kubernetes-scheduler-simulator at 8f3d6417: pkg/simulator/plugin/fgd_score.go,
    pkg/utils/frag.go (GetTypicalPods, NodeGpuShareFragAmountScore) and scripts/generate_config_and_run.py
    """
    mix = mix_of((each._replace(memory=0) for each in shapes), covered=0.95)

    def scores(pod: Shape, free: Amounts) -> Amounts:
        decrease = mix.fragmentation(free) - mix.fragmentation(free - np.array(pod))
        integers: Amounts = np.floor(100 / (1 + np.exp(-decrease)))
        return integers

    return Policy(scores, takes_first=True)


def fgd_exact(shapes: tuple[Shape, ...]) -> Policy:
    """Return the same with every shape of the workload, with memory, and without rounding; ties are broken at random.

    The difference between this and `fgd` is what the published simplifications cost.
    """
    mix = mix_of(shapes)

    def scores(pod: Shape, free: Amounts) -> Amounts:
        decrease = mix.fragmentation(free) - mix.fragmentation(free - np.array(pod))
        return np.round(decrease, 12)

    return Policy(scores)
