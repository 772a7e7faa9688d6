"""The ranking of the nodes for a pod, which is kept and brought up to date by the rows that changed.

Pods of one template come one after the other, and each takes room on one node. So all nodes are filtered and scored for
the first of them, and the changed ones for the others. kube-scheduler's opportunistic batching uses the same fact.

Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/batch.go, KEP-5598
"""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import RowChange, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.framework.interface import FilterPlugin, Scope, ScoreColumn, ScorePlugin, scope_of
from webhook.placement.framework.result import TIE
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity, normalized
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profile import Profile

Weighted = Sequence[tuple[ScorePlugin, int]]


class RankingPlugins:
    """The plugins of a profile by scope."""

    def __init__(self, profile: Profile) -> None:
        def filters(scope: Scope) -> list[FilterPlugin]:
            return [each for each in profile.filters if scope_of(each) == scope]

        def scores(scope: Scope) -> Weighted:
            others = [each for each in profile.scores if not isinstance(each[0], InterPodAffinity)]
            return [each for each in others if scope_of(each[0]) == scope]

        self.fact_filters, self.node_filters = filters(Scope.FACTS), filters(Scope.NODE)
        self.cluster_filters = filters(Scope.CLUSTER)
        self.fact_scores, self.node_scores = scores(Scope.FACTS), scores(Scope.NODE)
        self.cluster_scores = scores(Scope.CLUSTER)
        self.affinity = next(
            ((plugin, weight) for plugin, weight in profile.scores if isinstance(plugin, InterPodAffinity)), None
        )


class NodeRanking:
    """What depends on no pod of another node. Pods share it that differ in `inter_pod` alone."""

    def __init__(self, plugins: RankingPlugins, pod: PodInfo) -> None:
        self._plugins = plugins
        self._pod = pod
        self._position = -1
        self._passing: Mask | None = None
        self._own: ScoreColumn = np.empty(0, dtype=np.int64)
        self._of_facts: ScoreColumn = self._own
        self.feasible: Mask = np.empty(0, dtype=np.bool_)
        self.rows: Rows = np.empty(0, dtype=np.intp)
        self.totals: ScoreColumn = self._own

    @property
    def size_bytes(self) -> int:
        """Return the memory of the columns."""
        return 2 * self.feasible.nbytes + self.rows.nbytes + self._own.nbytes + 2 * self.totals.nbytes

    def own(self, rows: Rows) -> ScoreColumn:
        """Return the scores of `rows` that depend on the pods of each node."""
        return self._own.take(rows)

    def update(self, nodes: Snapshot, expired: Expired) -> None:
        """Take over the state of `nodes`, which has the log of the first call.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        changes = nodes.log.changes
        if self._position == len(changes):
            return
        plugins, pod = self._plugins, self._pod
        if self._passing is None:
            every = np.ones(len(nodes.nodes), dtype=np.bool_)
            self._passing = passing(plugins.fact_filters, pod, nodes, every, expired)
        feasible = passing(plugins.node_filters, pod, nodes, self._passing, expired)
        if self._position < 0:
            changed = np.flatnonzero(feasible)
            self._own = np.zeros(len(feasible), dtype=np.int64)
        else:
            rows = {each.row for each in changes[self._position :]}
            changed = np.array([row for row in rows if feasible[row]], dtype=np.intp)
        if self._position < 0 or not np.array_equal(feasible, self.feasible):
            self.feasible, self.rows = feasible, np.flatnonzero(feasible)
            self._of_facts = totals(plugins.fact_scores, pod, nodes, self.rows, expired)
        if len(changed):
            scores = totals(plugins.node_scores, pod, nodes, changed, expired)
            if scores.dtype != self._own.dtype:
                self._own = self._own.astype(np.float64)
            self._own[changed] = scores
        self.totals = self._of_facts + self._own.take(self.rows)
        self._position = len(changes)


class Ranking:
    """The nodes for one pod: a `NodeRanking`, and what depends on the pods of other nodes."""

    def __init__(self, plugins: RankingPlugins, nodes: NodeRanking, pod: PodInfo) -> None:
        self._plugins = plugins
        self._nodes = nodes
        self._pod = pod
        self._position = -1
        self._counts: DomainCounts | None = None

    @property
    def size_bytes(self) -> int:
        """Return the memory of the columns beside those of the `NodeRanking`."""
        return 0 if self._counts is None else self._counts.size_bytes

    def feasible(self, nodes: Snapshot, expired: Expired) -> Mask:
        """Return a mask of the nodes that pass every filter.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        self._nodes.update(nodes, expired)
        return passing(self._plugins.cluster_filters, self._pod, nodes, self._nodes.feasible, expired)

    def best_rows(self, nodes: Snapshot, feasible: Mask, expired: Expired) -> Rows:
        """Return the rows of the nodes with the best score among `feasible`, which has at least one.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        of_nodes = self._nodes
        rows, found = of_nodes.rows, of_nodes.totals
        if feasible is not of_nodes.feasible:
            passing = feasible.take(rows)
            if not passing.all():
                # Scores of facts are normalized over the feasible nodes.
                rows = rows[passing]
                found = totals(self._plugins.fact_scores, self._pod, nodes, rows, expired) + of_nodes.own(rows)
        if len(rows) == 1:
            return rows
        if self._plugins.affinity is not None:
            plugin, weight = self._plugins.affinity
            if not plugin.skips(self._pod):
                scores = normalized(self._updated_counts(plugin, nodes, expired), rows)
                if scores is not None:
                    found = found + (scores if weight == 1 else scores * weight)
        if self._plugins.cluster_scores:
            found = found + totals(self._plugins.cluster_scores, self._pod, nodes, rows, expired)
        best: Rows = rows[found >= found.max() - TIE]
        return best

    def _updated_counts(self, plugin: InterPodAffinity, nodes: Snapshot, expired: Expired) -> DomainCounts:
        changes = nodes.log.changes
        if self._counts is None:
            self._counts = plugin.counts(self._pod, nodes, expired)
        elif self._position < len(changes):
            for row, key, weight in [*self._weights(plugin, changes[self._position :], nodes, expired)]:
                self._counts.add_one(key, row, weight)
        self._position = len(changes)
        return self._counts

    def _weights(
        self, plugin: InterPodAffinity, changes: Sequence[RowChange], nodes: Snapshot, expired: Expired
    ) -> list[tuple[int, str, int]]:
        found = []
        for row, added, removed in in_time(changes, expired):
            for sign, pods in ((1, added), (-1, removed)):
                for each in pods:
                    found += [
                        (row, key, sign * weight) for key, weight in plugin.weights_of(each, self._pod, nodes, expired)
                    ]
        return found


def passing(filters: Sequence[FilterPlugin], pod: PodInfo, nodes: Snapshot, candidates: Mask, expired: Expired) -> Mask:
    """Return the `candidates` that pass all `filters`; the same mask if all do.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    left = candidates
    for plugin in in_time(filters, expired):
        for _, rejected in plugin.filter(pod, nodes, expired):
            if (rejected & left).any():
                left = left & ~rejected
    return left


def totals(plugins: Weighted, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> ScoreColumn:
    """Return the sums of the weighted scores of `rows`.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    found: ScoreColumn = np.zeros(len(rows), dtype=np.int64)
    for plugin, weight in in_time(plugins if len(rows) else (), expired):
        scores = None if plugin.skips(pod) else plugin.score(pod, nodes, rows, expired)
        if scores is not None:
            found = found + (scores if weight == 1 else scores * weight)
    return found
