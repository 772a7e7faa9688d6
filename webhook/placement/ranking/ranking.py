"""The ranking of the nodes for a pod, which is cached and updated for the rows that changed.

Pods of one template often arrive one after the other, and each takes room on one node. So all nodes are filtered and
scored for the first pod, and only the changed nodes for the others. kube-scheduler's opportunistic batching works in
the same way.

Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/batch.go, KEP-5598
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_term import WeightedPodTerm
from webhook.cluster.row_log import PodChange
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.framework.interface import FilterPlugin, concerns
from webhook.placement.framework.result import TIE
from webhook.placement.framework.scoring import Weighted
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity, normalized
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.ranking.node_ranking import NodeRanking, RankingPlugins, passing, totals


class AffinityKey(NamedTuple):
    """The terms by which pod affinity scores a pod: its own terms, and the terms of running pods that select it."""

    preferred: tuple[WeightedPodTerm, ...]
    selecting: frozenset[WeightedPodTerm]


class AffinityCounts:
    """The weights of running pods in topology domains, for pods with equal terms."""

    def __init__(self, plugin: InterPodAffinity, key: AffinityKey) -> None:
        self._plugin = plugin
        self._key = key
        self._position = -1
        self._counts: DomainCounts | None = None
        self._weights: dict[int, list[tuple[str, int]]] = {}

    def updated(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> DomainCounts:
        """Return the counts for `pod`, which must have the terms, on `nodes` with the log of the first call."""
        log = nodes.log
        new = log.since(self._position) if self._counts is not None else None
        if self._counts is None or new is None:
            self._counts = self._plugin.counts(pod, nodes, expired)
        else:
            # Read first: a deadline between two changes would count one of them twice.
            read = [(each, self._weights_of(each, nodes, expired)) for each in new]
            for (row, sign, _, _), weights in read:
                for key, weight in weights:
                    self._counts.add_one(key, row, sign * weight)
        self._position = log.position
        return self._counts

    def _weights_of(self, change: PodChange, nodes: Snapshot, expired: Expired) -> list[tuple[str, int]]:
        found = self._weights.get(change.number)
        if found is None:
            found = self._weights[change.number] = self._plugin.weights_of(change.pod, *self._key, nodes, expired)
        return found


class Ranking:
    """The ranking for one pod: a `NodeRanking`, and results by pods of other nodes (`counts_for`)."""

    def __init__(
        self,
        plugins: RankingPlugins,
        nodes: NodeRanking,
        pod: PodInfo,
        counts_for: Callable[[InterPodAffinity, AffinityKey], AffinityCounts],
    ) -> None:
        self._plugins = plugins
        self._nodes = nodes
        self._pod = pod
        self._counts_for = counts_for
        self._filters: Sequence[FilterPlugin] | None = None
        self._scores: Sequence[Weighted] = ()
        self._counts: AffinityCounts | None = None
        self._term_count = -1

    def feasible(self, nodes: Snapshot, expired: Expired) -> Mask:
        """Return a mask of the nodes that pass every filter."""
        if expired():
            raise DeadlineNearError
        if self._filters is None:
            self._filters = [each for each in self._plugins.cluster_filters if concerns(each, self._pod, nodes)]
            self._scores = [each for each in self._plugins.cluster_scores if concerns(each[0], self._pod, nodes)]
        self._nodes.update(nodes, expired)
        return passing(self._filters, self._pod, nodes, self._nodes.feasible, expired)

    def best_rows(self, nodes: Snapshot, feasible: Mask, expired: Expired) -> Rows:
        """Return the rows of the nodes with the best score among `feasible`, which must have at least one node."""
        if expired():
            raise DeadlineNearError
        of_nodes, pod = self._nodes, self._pod
        rows, found = of_nodes.rows, of_nodes.totals
        if feasible is not of_nodes.feasible and not (is_left := feasible.take(rows)).all():
            rows = rows[is_left]
            found = of_nodes.totals_of(rows, feasible, nodes, expired)
        if len(rows) == 1:
            return rows
        affinity = self._plugins.affinity
        if affinity is not None and not affinity[0].skips(pod):
            plugin, weight = affinity
            scores = normalized(self._affinity(plugin, nodes, expired), rows)
            if scores is not None:
                found = found + (scores if weight == 1 else scores * weight)
        if self._scores:
            found = found + totals(self._scores, pod, nodes, rows, expired)
        best: Rows = rows[found >= np.maximum.reduce(found) - TIE]
        return best

    def _affinity(self, plugin: InterPodAffinity, nodes: Snapshot, expired: Expired) -> DomainCounts:
        term_count = nodes.pods.classes.term_count
        if self._counts is None or self._term_count != term_count:
            preferred = self._pod.inter_pod.terms.preferred
            key = AffinityKey(preferred, plugin.terms_selecting(self._pod, nodes, expired))
            self._counts, self._term_count = self._counts_for(plugin, key), term_count
        return self._counts.updated(self._pod, nodes, expired)
