"""Policies that choose a node by the free GPUs that become useless, to compare the configurations with."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.outcome.arrivals import Shape
from bench.outcome.figures import Amounts, Mix


class Candidates(NamedTuple):
    """The nodes that can take a pod: their free cores (thousandths), MiB and GPUs, in rows, and their capacity.

    `everywhere` are the free amounts of all nodes.
    """

    free: Amounts
    capacity: Amounts
    everywhere: Amounts


# Returns the score of each candidate.
Scores = Callable[[Shape, Candidates], Amounts]


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
    mix = Mix((each._replace(memory=0) for each in shapes), covered=0.95)

    def scores(pod: Shape, nodes: Candidates) -> Amounts:
        decrease = mix.fragmentation(nodes.free) - mix.fragmentation(nodes.free - np.array(pod))
        integers: Amounts = np.floor(100 / (1 + np.exp(-decrease)))
        return integers

    return Policy(scores, takes_first=True)


def fgd_exact(shapes: tuple[Shape, ...]) -> Policy:
    """Return the same with every shape of the workload, with memory, and without rounding; ties are broken at random.

    The difference between this and `fgd` is what the published simplifications cost.
    """
    mix = Mix(shapes)

    def scores(pod: Shape, nodes: Candidates) -> Amounts:
        decrease = mix.fragmentation(nodes.free) - mix.fragmentation(nodes.free - np.array(pod))
        return np.round(decrease, 12)

    return Policy(scores)


def scarcity(shapes: tuple[Shape, ...]) -> Policy:
    """Return the choice of the node where each shape loses the least of the GPUs that are left for it.

    The loss of a shape on a node is the number of free GPUs that it can no longer use, divided by the free GPUs of the
    cluster that it can use. Losses are weighted with the share of the shape among the pods.
    """
    mix = Mix(shapes)

    def scores(pod: Shape, nodes: Candidates) -> Amounts:
        left = np.maximum(mix.usable(nodes.everywhere).sum(axis=0), 1)
        lost = mix.usable(nodes.free) - mix.usable(nodes.free - np.array(pod))
        # Differences that stem from the order of additions are no differences.
        by_loss: Amounts = -np.round(lost @ (mix.shares / left), 12)
        return by_loss + 1e-12 * _most_allocated(pod, nodes) / 100

    return Policy(scores)


def _most_allocated(pod: Shape, nodes: Candidates) -> Amounts:
    allocated: Amounts = (1 - (nodes.free - np.array(pod)) / nodes.capacity) @ np.array((1, 1, 5)) * 100 / 7
    return allocated
