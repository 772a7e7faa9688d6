"""The score step of a scheduling cycle."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.interface import ScoreColumn, ScorePlugin
from webhook.placement.framework.result import ScoreTable
from webhook.placement.pod.pod_info import PodInfo


def run_scores(
    plugins: Sequence[tuple[ScorePlugin, int]], pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired
) -> ScoreTable:
    """Return the scores of the feasible `rows` of `nodes` by `plugins` with their weights; a single node has none.

    Raises:
        DeadlineNearError: `expired()` holds.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunScorePlugins
    """
    totals: ScoreColumn = np.zeros(len(rows), dtype=np.int64)
    by_plugin = []
    for plugin, weight in in_time(plugins if len(rows) > 1 else (), expired):
        scores = None if plugin.skips(pod) else plugin.score(pod, nodes, rows, expired)
        if scores is not None:
            weighted = scores if weight == 1 else scores * weight
            totals = totals + weighted
            by_plugin.append((plugin.name, weighted))
    return ScoreTable(rows, totals, tuple(by_plugin))
