"""The part of a ranking that does not depend on other nodes, shared by pods of many templates."""

from collections.abc import Collection, Sequence
from operator import attrgetter

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.framework.interface import FilterPlugin, Scope, ScoreColumn, scope_of
from webhook.placement.framework.scoring import Weighted, weighted_scores
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile

_MOST_STATES = 1024
_NO_NODES: Mask = np.empty(0, dtype=np.bool_)
_NO_ROWS: Rows = np.empty(0, dtype=np.intp)
_NO_SCORES: ScoreColumn = np.empty(0, dtype=np.int64)


class RankingPlugins:
    """The plugins of a profile by scope."""

    def __init__(self, profile: Profile) -> None:
        filters: dict[Scope, list[FilterPlugin]] = {scope: [] for scope in Scope}
        for each in profile.filters:
            filters[scope_of(each)].append(each)
        scores: dict[Scope, list[Weighted]] = {scope: [] for scope in Scope}
        self.affinity: tuple[InterPodAffinity, int] | None = None
        for plugin, weight in profile.scores:
            if isinstance(plugin, InterPodAffinity):
                self.affinity = plugin, weight
            else:
                scores[scope_of(plugin)].append((plugin, weight))
        self.fact_filters, self.node_filters, self.cluster_filters = filters.values()
        self.fact_scores, self.node_scores, self.cluster_scores = scores.values()


facts_of = attrgetter(
    "node_name",
    "tolerations",
    "node_selector",
    "required",
    "domain",
    "preferred",
    "images",
    "image_volumes",
    "containers",
)
"""Returns all that the filters and scores read of a pod that depend on no other pod."""


class _Spread:
    """The scores of a plugin by row, if they differ, with a row of the smallest score and one of the largest."""

    __slots__ = ("_column", "_ends")

    def __init__(self, column: ScoreColumn, rows: Rows, size: int) -> None:
        self._column: Column = np.full(size, column.min(), dtype=np.int64)
        self._column[rows] = column
        self._ends = int(rows[column.argmin()]), int(rows[column.argmax()])

    def has_ends(self, rows: Rows, among: Mask) -> bool:
        """Return whether `rows` contain both the smallest and the largest score. `among` is the mask of `rows`."""
        least, largest = self._ends
        if among[least] and among[largest]:
            return True
        of_rows, column = self._column.take(rows), self._column
        if len(rows) == 0 or of_rows.min() != column[least] or of_rows.max() != column[largest]:
            return False
        self._ends = int(rows[of_rows.argmin()]), int(rows[of_rows.argmax()])
        return True


class FactRanking:
    """The part of a ranking that depends only on the nodes. Pods that differ only in amounts share it."""

    def __init__(self, plugins: RankingPlugins) -> None:
        self._plugins = plugins
        self._passing: Mask | None = None
        self._spreads: list[_Spread] | None = None
        self._every = _NO_SCORES

    def passing(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
        """Return a mask of the nodes that pass the filters."""
        if self._passing is None:
            every = np.ones(len(nodes.nodes), dtype=np.bool_)
            self._passing = passing(self._plugins.fact_filters, pod, nodes, every, expired)
        return self._passing

    def totals(self, pod: PodInfo, nodes: Snapshot, rows: Rows, among: Mask, expired: Expired) -> ScoreColumn:
        """Return the scores of `rows`, normalized over these rows. `among` is the mask of `rows`.

        Normalizing over fewer nodes gives the same result if they have both the smallest and the largest score.
        """
        if self._spreads is None:
            every = np.flatnonzero(self.passing(pod, nodes, expired))
            columns = [each for _, each in weighted_scores(self._plugins.fact_scores, pod, nodes, every, expired)]
            self._every = np.zeros(len(nodes.nodes), dtype=np.int64)
            self._every[every] = sum(columns) if columns else 0
            self._spreads = [_Spread(column, every, len(nodes.nodes)) for column in columns if np.ptp(column)]
        for spread in self._spreads:
            if not spread.has_ends(rows, among):
                return totals(self._plugins.fact_scores, pod, nodes, rows, expired)
        return self._every.take(rows)


class NodeRanking:
    """The part of a ranking without other nodes, shared by pods that differ only in `inter_pod`."""

    def __init__(self, plugins: RankingPlugins, facts: FactRanking, pod: PodInfo) -> None:
        self._plugins = plugins
        self._facts = facts
        self._pod = pod
        self._position = -1
        self._by_facts = _NO_NODES
        self._own = _NO_SCORES
        # By the amounts of a node. No score: the node does not pass.
        self._known: dict[object, float | None] = {}
        self.feasible = _NO_NODES
        self.rows = _NO_ROWS
        self.totals = _NO_SCORES

    def totals_of(self, rows: Rows, among: Mask, nodes: Snapshot, expired: Expired) -> ScoreColumn:
        """Return the scores of `rows`, which are feasible. `among` is the mask of `rows`."""
        return self._facts.totals(self._pod, nodes, rows, among, expired) + self._own.take(rows)

    def update(self, nodes: Snapshot, expired: Expired) -> None:
        """Update the ranking to the state of `nodes`, which must have the same log as in the first call."""
        log = nodes.log
        if self._position == log.position:
            return
        changes = log.since(self._position) if self._position >= 0 else None
        # A deadline can end the work between two of its parts: it then begins anew.
        self._position = -1
        if changes is None:
            self._begin(nodes, expired)
        else:
            self._follow({each.row for each in changes}, nodes, expired)
        self._position = log.position

    def _begin(self, nodes: Snapshot, expired: Expired) -> None:
        plugins, pod = self._plugins, self._pod
        self._by_facts = self._facts.passing(pod, nodes, expired)
        self.feasible = passing(plugins.node_filters, pod, nodes, self._by_facts, expired)
        (self.rows,) = self.feasible.nonzero()
        scores = totals(plugins.node_scores, pod, nodes, self.rows, expired)
        # Without a feasible node, it is not known yet whether scores are whole numbers.
        self._own = np.zeros(len(self.feasible))
        self._own[self.rows] = scores
        self.totals = self.totals_of(self.rows, self.feasible, nodes, expired)

    def _follow(self, rows: Collection[int], nodes: Snapshot, expired: Expired) -> None:
        found = self._scores_of([row for row in rows if self._by_facts.item(row)], nodes, expired)
        moved = [row for row, score in found.items() if (score is not None) is not self.feasible.item(row)]
        if moved:
            # A new mask: results that were computed from the one before keep it.
            self.feasible = self.feasible.copy()
            for row in moved:
                self.feasible[row] = found[row] is not None
            (self.rows,) = self.feasible.nonzero()
        for row, score in found.items():
            if score is not None:
                before, self._own[row] = self._own.item(row), score
                if not moved and before != score:
                    self.totals[self.rows.searchsorted(row)] += score - before
        if moved:
            self.totals = self.totals_of(self.rows, self.feasible, nodes, expired)

    def _scores_of(self, rows: Sequence[int], nodes: Snapshot, expired: Expired) -> dict[int, float | None]:
        """Return, for each of `rows`, the score that depends on its own pods, or no score if the node does not pass."""
        pod, known = self._pod, self._known
        if pod.host_ports or pod.by_container:
            return self._evaluated(rows, nodes, expired)
        if len(known) > _MOST_STATES:
            known.clear()
        found: dict[int, float | None] = {}
        unknown, is_any_terminating = {}, nodes.pods.is_any_terminating
        for row in rows:
            info = nodes.nodes[row]
            is_releasing = is_any_terminating and any(pod.is_terminating for pod in info.pods)
            state = None if is_releasing else _amounts(info)
            if state in known:
                found[row] = known[state]
            else:
                unknown[row] = state
        if unknown:
            found |= self._evaluated([*unknown], nodes, expired)
            known.update({state: found[row] for row, state in unknown.items() if state is not None})
        return found

    def _evaluated(self, rows: Sequence[int], nodes: Snapshot, expired: Expired) -> dict[int, float | None]:
        passes = passing(self._plugins.node_filters, self._pod, nodes, self._by_facts, expired)
        scored = np.array([row for row in rows if passes[row]], dtype=np.intp)
        scores = totals(self._plugins.node_scores, self._pod, nodes, scored, expired).tolist()
        return dict.fromkeys(rows) | dict(zip(scored.tolist(), scores, strict=True))


def _amounts(info: NodeInfo) -> object:
    """Return everything that the results of a node depend on, except host ports, devices and pods being deleted."""
    # Equal amounts in another order are other states: sorting costs more than evaluating these once.
    return (
        tuple(info.node.allocatable.items()),
        info.node.allowed_pods,
        tuple(info.requested.items()),
        info.non_zero_milli_cpu,
        info.non_zero_memory_bytes,
        len(info.pods),
    )


def passing(filters: Sequence[FilterPlugin], pod: PodInfo, nodes: Snapshot, candidates: Mask, expired: Expired) -> Mask:
    """Return the `candidates` that pass all `filters`. If all pass, the same mask is returned."""
    left = candidates
    for plugin in filters:
        for _, rejected in plugin.filter(pod, nodes, expired):
            # For a mask, this takes a third of the time of `any()`.
            if np.count_nonzero(rejected & left):
                left = left & ~rejected
    return left


def totals(plugins: Sequence[Weighted], pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> ScoreColumn:
    """Return the sum of the weighted scores for each of `rows`."""
    found: ScoreColumn = np.zeros(len(rows), dtype=np.int64)
    for _, column in weighted_scores(plugins, pod, nodes, rows, expired):
        found = found + column
    return found
