"""The ranking of the nodes for a pod, which is kept and brought up to date by the rows that changed.

Pods of one template come one after the other, and each takes room on one node. So all nodes are filtered and scored for
the first of them, and the changed ones for the others. kube-scheduler's opportunistic batching uses the same fact.

Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/batch.go, KEP-5598
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import Term, WeightedTerm
from webhook.cluster.index.pod_term import WeightedPodTerm
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import ClassifiedPod, Column, Rows, Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.kube.taints import Tolerations
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.framework.interface import (
    FilterPlugin,
    Scope,
    ScoreColumn,
    ScorePlugin,
    concerns,
    scope_of,
)
from webhook.placement.framework.result import TIE
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity, normalized
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profile import Profile

Weighted = Sequence[tuple[ScorePlugin, int]]

_MOST_STATES = 1024


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


class FactsKey(NamedTuple):
    """All that the filters and scores read of a pod that depend on no other pod."""

    node_name: str
    tolerations: Tolerations
    node_selector: tuple[tuple[str, str], ...]
    required: tuple[Term, ...] | None
    preferred: tuple[WeightedTerm, ...]
    images: tuple[str, ...]
    image_volumes: tuple[str, ...]
    containers: int

    @classmethod
    def of(cls, pod: PodInfo) -> "FactsKey":
        """Return the key of `pod`."""
        return cls(
            pod.node_name,
            pod.tolerations,
            pod.node_selector,
            pod.required,
            pod.preferred,
            pod.images,
            pod.image_volumes,
            pod.containers,
        )


class FactRanking:
    """What depends on no pod at all. Pods share it that differ in amounts."""

    def __init__(self, plugins: RankingPlugins) -> None:
        self._plugins = plugins
        self._passing: Mask | None = None
        self._columns: list[ScoreColumn] | None = None
        self._every: ScoreColumn = np.empty(0, dtype=np.int64)

    def passing(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
        """Return a mask of the nodes that pass the filters.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if self._passing is None:
            every = np.ones(len(nodes.nodes), dtype=np.bool_)
            self._passing = passing(self._plugins.fact_filters, pod, nodes, every, expired)
        return self._passing

    def totals(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> ScoreColumn:
        """Return the scores of `rows`, which are normalized over them.

        The normalization is the same over fewer nodes if these have both the least and the largest score.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if self._columns is None:
            every = np.flatnonzero(self.passing(pod, nodes, expired))
            columns = weighted_scores(self._plugins.fact_scores, pod, nodes, every, expired)
            self._every = np.zeros(len(nodes.nodes), dtype=np.int64)
            self._every[every] = sum(columns) if columns else 0
            self._columns = [_spread(column, every, len(nodes.nodes)) for column in columns if np.ptp(column)]
        if all(_has_extremes(column, rows) for column in self._columns):
            return self._every[rows]
        return totals(self._plugins.fact_scores, pod, nodes, rows, expired)


def _spread(column: ScoreColumn, rows: Rows, size: int) -> ScoreColumn:
    """Return `column`, which has the scores of `rows`, with an entry for each of `size` nodes."""
    spread: Column = np.full(size, column.min(), dtype=np.int64)
    spread[rows] = column
    return spread


def _has_extremes(column: ScoreColumn, rows: Rows) -> bool:
    of_rows = column[rows]
    return len(of_rows) > 0 and bool(of_rows.max() == column.max() and of_rows.min() == column.min())


class _Own(NamedTuple):
    """Whether a node passes the filters that depend on its own pods, and its score by them."""

    passes: bool
    score: float


class NodeRanking:
    """What depends on no pod of another node. Pods share it that differ in `inter_pod` alone.

    Nodes with equal amounts have equal results, which are kept: a pod of a burst takes a node from one of few states to
    the next.
    """

    def __init__(self, plugins: RankingPlugins, facts: FactRanking, pod: PodInfo) -> None:
        self._plugins = plugins
        self._facts = facts
        self._pod = pod
        self._position = -1
        self._by_facts: Mask = np.empty(0, dtype=np.bool_)
        self._own: ScoreColumn = np.empty(0, dtype=np.int64)
        self._known: dict[object, _Own] = {}
        self.feasible: Mask = np.empty(0, dtype=np.bool_)
        self.rows: Rows = np.empty(0, dtype=np.intp)
        self.totals: ScoreColumn = self._own

    def totals_of(self, rows: Rows, nodes: Snapshot, expired: Expired) -> ScoreColumn:
        """Return the scores of some of the feasible nodes.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        return self._facts.totals(self._pod, nodes, rows, expired) + self._own[rows]

    def update(self, nodes: Snapshot, expired: Expired) -> None:
        """Take over the state of `nodes`, which has the log of the first call.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        changes = nodes.log.changes
        if self._position == len(changes):
            return
        if self._position < 0:
            self._begin(nodes, expired)
        else:
            self._follow({each.row for each in changes[self._position :]}, nodes, expired)
        self._position = len(changes)

    def _begin(self, nodes: Snapshot, expired: Expired) -> None:
        plugins, pod = self._plugins, self._pod
        self._by_facts = self._facts.passing(pod, nodes, expired)
        self.feasible = passing(plugins.node_filters, pod, nodes, self._by_facts, expired)
        self.rows = np.flatnonzero(self.feasible)
        scores = totals(plugins.node_scores, pod, nodes, self.rows, expired)
        is_integer = np.issubdtype(scores.dtype, np.integer)
        self._own = np.zeros(len(self.feasible), dtype=np.int64) if is_integer else np.zeros(len(self.feasible))
        self._own[self.rows] = scores
        self.totals = self._facts.totals(pod, nodes, self.rows, expired) + scores

    def _follow(self, rows: Collection[int], nodes: Snapshot, expired: Expired) -> None:
        found = self._own_of([row for row in rows if self._by_facts[row]], nodes, expired)
        moved = [row for row, own in found.items() if own.passes != self.feasible[row]]
        if moved:
            # A new mask: results that were computed from the one before keep it.
            self.feasible = self.feasible.copy()
            for row in moved:
                self.feasible[row] = found[row].passes
            self.rows = np.flatnonzero(self.feasible)
        for row, own in found.items():
            if own.passes:
                before, self._own[row] = self._own[row], own.score
                if not moved and before != own.score:
                    self.totals[self.rows.searchsorted(row)] += own.score - before
        if moved:
            self.totals = self._facts.totals(self._pod, nodes, self.rows, expired) + self._own[self.rows]

    def _own_of(self, rows: Sequence[int], nodes: Snapshot, expired: Expired) -> dict[int, _Own]:
        pod, known = self._pod, self._known
        if pod.host_ports or pod.by_container:
            return self._evaluated(rows, nodes, expired)
        if len(known) > _MOST_STATES:
            known.clear()
        found, unknown = {}, {}
        for row in rows:
            state = _amounts(nodes.nodes[row])
            own = known.get(state)
            if own is None or (nodes.pods.is_any_terminating and _is_releasing(nodes.nodes[row])):
                unknown[row] = state
            else:
                found[row] = own
        if unknown:
            found |= self._evaluated([*unknown], nodes, expired)
            known.update({unknown[row]: found[row] for row in unknown if not _is_releasing(nodes.nodes[row])})
        return found

    def _evaluated(self, rows: Sequence[int], nodes: Snapshot, expired: Expired) -> dict[int, _Own]:
        passes = passing(self._plugins.node_filters, self._pod, nodes, self._by_facts, expired)
        scored = np.array([row for row in rows if passes[row]], dtype=np.intp)
        scores = totals(self._plugins.node_scores, self._pod, nodes, scored, expired).tolist()
        by_row = dict(zip(scored.tolist(), scores, strict=True))
        return {row: _Own(row in by_row, by_row.get(row, 0)) for row in rows}


def _is_releasing(info: NodeInfo) -> bool:
    return any(pod.is_terminating for pod in info.pods)


def _amounts(info: NodeInfo) -> object:
    """Return all that the results of a node depend on, but for host ports, devices and pods that are being deleted."""
    return (
        frozenset(info.node.allocatable.items()),
        info.node.allowed_pods,
        frozenset(info.requested.items()),
        info.non_zero_milli_cpu,
        info.non_zero_memory_bytes,
        len(info.pods),
    )


class AffinityKey(NamedTuple):
    """The terms by which pod affinity scores a pod: its own, and those of running pods that select it."""

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
        """Return the counts for `pod`, which has the terms, on `nodes`, which has the log of the first call.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        changes = nodes.log.changes
        if self._counts is None:
            self._counts = self._plugin.counts(pod, nodes, expired)
        elif self._position < len(changes):
            # Known first: a deadline between two changes would count one of them twice.
            new = changes[self._position :]
            for change in new:
                self._know(change.added, nodes, expired)
                self._know(change.removed, nodes, expired)
            for row, added, removed in new:
                for sign, pods in ((1, added), (-1, removed)):
                    for each in pods:
                        for key, weight in self._weights[each.number]:
                            self._counts.add_one(key, row, sign * weight)
        self._position = len(changes)
        return self._counts

    def _know(self, pods: Iterable[ClassifiedPod], nodes: Snapshot, expired: Expired) -> None:
        for number, pod in pods:
            if number not in self._weights:
                self._weights[number] = self._plugin.weights_of(pod, *self._key, nodes, expired)


class Ranking:
    """The nodes for one pod: a `NodeRanking`, and what depends on the pods of other nodes.

    `counts_for` returns the counts that pods with equal terms share.
    """

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
        self._scores: Weighted = ()
        self._counts: AffinityCounts | None = None
        self._term_count = -1

    def feasible(self, nodes: Snapshot, expired: Expired) -> Mask:
        """Return a mask of the nodes that pass every filter.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if expired():
            raise DeadlineNearError
        if self._filters is None:
            self._filters = [each for each in self._plugins.cluster_filters if concerns(each, self._pod, nodes)]
            self._scores = [each for each in self._plugins.cluster_scores if concerns(each[0], self._pod, nodes)]
        self._nodes.update(nodes, expired)
        return passing(self._filters, self._pod, nodes, self._nodes.feasible, expired)

    def best_rows(self, nodes: Snapshot, feasible: Mask, expired: Expired) -> Rows:
        """Return the rows of the nodes with the best score among `feasible`, which has at least one.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if expired():
            raise DeadlineNearError
        of_nodes, pod = self._nodes, self._pod
        rows, found = of_nodes.rows, of_nodes.totals
        if feasible is not of_nodes.feasible and not (is_left := feasible.take(rows)).all():
            rows = rows[is_left]
            found = of_nodes.totals_of(rows, nodes, expired)
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
        best: Rows = rows[found >= found.max() - TIE]
        return best

    def _affinity(self, plugin: InterPodAffinity, nodes: Snapshot, expired: Expired) -> DomainCounts:
        term_count = nodes.pods.classes.term_count
        if self._counts is None or self._term_count != term_count:
            preferred = self._pod.inter_pod.terms.preferred
            key = AffinityKey(preferred, plugin.terms_selecting(self._pod, nodes, expired))
            self._counts, self._term_count = self._counts_for(plugin, key), term_count
        return self._counts.updated(self._pod, nodes, expired)


def passing(filters: Sequence[FilterPlugin], pod: PodInfo, nodes: Snapshot, candidates: Mask, expired: Expired) -> Mask:
    """Return the `candidates` that pass all `filters`; the same mask if all do.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    left = candidates
    for plugin in filters:
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
    for column in weighted_scores(plugins, pod, nodes, rows, expired):
        found = found + column
    return found


def weighted_scores(
    plugins: Weighted, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired
) -> list[ScoreColumn]:
    """Return the weighted scores of `rows` by plugin.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    found = []
    for plugin, weight in plugins if len(rows) else ():
        scores = None if plugin.skips(pod) else plugin.score(pod, nodes, rows, expired)
        if scores is not None:
            found.append(scores if weight == 1 else scores * weight)
    return found
