"""Scores of a requested share of a capacity, on a line that a scheduler configuration can set."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from webhook.cluster.snapshot import Column
from webhook.placement.framework.interface import MAX_NODE_SCORE


@dataclass(frozen=True, slots=True)
class UtilizationScore:
    """The score of the requested share of the capacity on a broken line.

    `shape` are points of utilization, in percent and increasing, and score, from 0 to 100. The line is level before the
    first and after the last point.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go, and
    helper/shape_score.go, BuildBrokenLinearFunction
    """

    shape: tuple[tuple[int, int], ...]

    def __call__(self, requested: Column, capacity: Column) -> Column:
        """Return the score of each utilization, which is at most 100 percent."""
        percent = np.minimum(requested, capacity) * 100 // capacity
        scores = np.full_like(percent, self.shape[-1][1])
        for (left, low), (right, high) in reversed(tuple(pairwise(self.shape))):
            climbed = (high - low) * (percent - left)
            # Go rounds a quotient towards zero.
            on_line = low + np.sign(climbed) * (np.abs(climbed) // (right - left))
            scores = np.where(percent <= right, on_line, scores)
        return np.where(percent <= self.shape[0][0], self.shape[0][1], scores)


LEAST_UTILIZED = UtilizationScore(((0, MAX_NODE_SCORE), (100, 0)))
