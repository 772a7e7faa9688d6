"""The score step of a scheduling cycle, and the broken-line scores that a scheduler configuration can define."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.interface import MAX_NODE_SCORE, ScoreColumn, ScorePlugin
from webhook.placement.framework.result import ScoreTable
from webhook.placement.pod.pod_info import PodInfo

Weighted = tuple[ScorePlugin, int]


def run_scores(plugins: Sequence[Weighted], pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> ScoreTable:
    """Return the scores of the feasible `rows` of `nodes` by the weighted `plugins`. A single node is not scored.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunScorePlugins
    """
    scored = in_time(plugins if len(rows) > 1 else (), expired)
    by_plugin = weighted_scores(scored, pod, nodes, rows, expired)
    totals: ScoreColumn = np.zeros(len(rows), dtype=np.int64)
    for _, scores in by_plugin:
        totals = totals + scores
    return ScoreTable(rows, totals, tuple(by_plugin))


def weighted_scores(
    plugins: Iterable[Weighted], pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired
) -> list[tuple[str, ScoreColumn]]:
    """Return the name of each plugin that scores `pod`, and its weighted scores of `rows`."""
    found = []
    for plugin, weight in plugins if len(rows) else ():
        scores = plugin.score(pod, nodes, rows, expired)
        if scores is not None:
            found.append((plugin.name, scores if weight == 1 else scores * weight))
    return found


@dataclass(frozen=True, slots=True)
class UtilizationScore:
    """The score of the requested share of the capacity, on a broken line.

    `shape` are points of (utilization in percent, increasing; score from 0 to 100). The line is constant before the
    first point and after the last one.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go, and
    helper/shape_score.go, BuildBrokenLinearFunction
    """

    shape: tuple[tuple[int, int], ...]

    def __call__(self, requested: Column, capacity: Column) -> Column:
        """Return the score of each utilization, which is limited to 100 percent."""
        percent = np.minimum(requested, capacity) * 100 // capacity
        scores = np.full_like(percent, self.shape[-1][1])
        for (left, low), (right, high) in reversed(tuple(pairwise(self.shape))):
            climbed = (high - low) * (percent - left)
            # Go rounds a quotient towards zero.
            on_line = low + np.sign(climbed) * (np.abs(climbed) // (right - left))
            scores = np.where(percent <= right, on_line, scores)
        return np.where(percent <= self.shape[0][0], self.shape[0][1], scores)


LEAST_UTILIZED = UtilizationScore(((0, MAX_NODE_SCORE), (100, 0)))
