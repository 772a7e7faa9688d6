"""PodTopologySpread: the pods that a selector selects are spread over topology domains."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.label_selector import LabelSelector, selector_matches
from webhook.kube.wellknown import HOSTNAME_LABEL
from webhook.placement.framework.interface import MAX_NODE_SCORE, Failure
from webhook.placement.framework.node_inclusion import required_affinity_matches, untolerated
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod.spread_constraint import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULT_CONSTRAINTS,
    SpreadConstraint,
)

ERR_REASON_CONSTRAINTS_NOT_MATCH = "node(s) didn't match pod topology spread constraints"
ERR_REASON_NODE_LABEL_NOT_MATCH = f"{ERR_REASON_CONSTRAINTS_NOT_MATCH} (missing required label)"


class _Asked(NamedTuple):
    """The constraints of one kind that a pod has; `of_every_key`: they speak of nodes with all their labels alone."""

    constraints: tuple[SpreadConstraint, ...]
    of_every_key: bool


class PodTopologySpread:
    """Counts the pods on each node once a constraint, then sums over topology domains.

    `default_constraints` are those of pods without their own, with the selector of their Services and controller;
    `system_defaulted`: nodes without all the labels of these are scored too.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, scoring.go and common.go
    """

    name = "PodTopologySpread"

    def __init__(
        self,
        default_constraints: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULT_CONSTRAINTS,
        *,
        system_defaulted: bool = True,
    ) -> None:
        self._default_constraints = default_constraints
        self._system_defaulted = system_defaulted

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The nodes where the pod would make the skew of a DoNotSchedule constraint too large, or that lack its label.

        A node fails for the first such constraint.
        """
        constraints = self._asked(pod, nodes, DO_NOT_SCHEDULE).constraints
        if not constraints:
            return ()
        counting = _Counting(pod, nodes, constraints, expired, of_every_key=True)
        skewed = np.zeros(len(nodes.nodes), dtype=np.bool_)
        unlabelled = np.zeros_like(skewed)
        for constraint in in_time(constraints, expired):
            codes = nodes.labels.domains(constraint.topology_key).codes
            unlabelled |= (codes < 0) & ~skewed
            skewed |= counting.too_skewed(constraint) & ~unlabelled
        return (
            Failure(ERR_REASON_CONSTRAINTS_NOT_MATCH, skewed),
            Failure(ERR_REASON_NODE_LABEL_NOT_MATCH, unlabelled),
        )

    def skips(self, pod: PodInfo) -> bool:
        """Where `pod` has constraints of its own and none is ScheduleAnyway."""
        spread = pod.inter_pod.spread
        return bool(spread) and all(each.when_unsatisfiable != SCHEDULE_ANYWAY for each in spread)

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """The fewer selected pods in the node's domains, the higher; None without ScheduleAnyway constraints.

        Nodes without all the labels score 0. Small domains weigh less, such that many of them count as few do.
        """
        asked = self._asked(pod, nodes, SCHEDULE_ANYWAY)
        if not asked.constraints:
            return None
        counting = _Counting(pod, nodes, asked.constraints, expired, of_every_key=asked.of_every_key)
        scored = counting.labelled[rows]
        candidates = rows[scored]
        total = np.zeros(len(candidates), dtype=np.float64)
        for constraint in in_time(asked.constraints, expired):
            total += counting.weighed(constraint, candidates)
        scores = np.zeros(len(rows), dtype=np.int64)
        scores[scored] = _normalized(_rounded(total))
        return scores

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """With a DoNotSchedule constraint."""
        return bool(self._asked(pod, nodes, DO_NOT_SCHEDULE).constraints)

    def _asked(self, pod: PodInfo, nodes: Snapshot, when_unsatisfiable: str) -> _Asked:
        spread = pod.inter_pod.spread
        if spread:
            return _Asked(tuple(_of_kind(spread, when_unsatisfiable)), of_every_key=True)
        defaults = tuple(_of_kind(self._default_constraints, when_unsatisfiable))
        selector = _default_selector(pod, nodes) if defaults else ()
        own = tuple([constraint._replace(selector=selector) for constraint in defaults]) if selector else ()
        return _Asked(own, of_every_key=not self._system_defaulted)


def _of_kind(constraints: Iterable[SpreadConstraint], when_unsatisfiable: str) -> Iterator[SpreadConstraint]:
    return (each for each in constraints if each.when_unsatisfiable == when_unsatisfiable)


def _default_selector(pod: PodInfo, nodes: Snapshot) -> LabelSelector:
    peers = pod.inter_pod
    return nodes.workloads.default_selector(peers.namespace, dict(peers.labels), peers.owner)


class _Counting:
    """The pods of a namespace on nodes; `labelled` nodes are those with the labels of all constraints, or any node."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Snapshot,
        constraints: Iterable[SpreadConstraint],
        expired: Expired,
        *,
        of_every_key: bool,
    ) -> None:
        self._pod = pod
        self._nodes = nodes
        self._expired = expired
        self._matching: Mask | None = None
        self._untolerated: Mask | None = None
        self.labelled = np.ones(len(nodes.nodes), dtype=np.bool_)
        for constraint in in_time(constraints if of_every_key else (), expired):
            self.labelled &= nodes.labels.domains(constraint.topology_key).codes >= 0

    def too_skewed(self, constraint: SpreadConstraint) -> Mask:
        """The nodes in whose domain one pod more would be too many."""
        codes, size = self._nodes.labels.domains(constraint.topology_key)
        counted = self.labelled & self._included(constraint)
        domains = codes[counted]
        matching = _summed(domains, self._on_nodes(constraint.selector)[counted], size + 1)
        exists = np.bincount(domains, minlength=size + 1) > 0
        of_least = int(matching[exists].min()) if np.count_nonzero(exists) >= constraint.min_domains else 0
        itself = int(selector_matches(constraint.selector, dict(self._pod.inter_pod.labels)))
        skewed: Mask = matching[codes] + itself - of_least > constraint.max_skew
        return skewed

    def weighed(self, constraint: SpreadConstraint, rows: Rows) -> NDArray[np.float64]:
        """The selected pods in the domains of `rows`, weighed by how many domains there are; 0 without the label."""
        codes, size = self._nodes.labels.domains(constraint.topology_key)
        here = codes[rows]
        on_nodes = self._on_nodes(constraint.selector)
        if constraint.topology_key == HOSTNAME_LABEL:
            domains, matching = len(rows), on_nodes[rows]
        else:
            domains = len(np.unique(here))
            counted = self.labelled & self._included(constraint) & (codes >= 0)
            matching = _summed(codes[counted], on_nodes[counted], size + 1)[here]
        weighed = matching * math.log(domains + 2) + (constraint.max_skew - 1)
        return np.where(here >= 0, weighed, 0.0)

    def _on_nodes(self, selector: LabelSelector | None) -> Column:
        """How many pods `selector` selects on each node; an empty one counts none."""
        if selector == () and self._nodes.assumed:
            return np.bincount(self._rows_of_assumed(), minlength=len(self._nodes.nodes))
        namespaces = (self._pod.inter_pod.namespace,)
        rows = self._nodes.pods.rows_selected(namespaces, selector or None, self._expired, terminating=False)
        return np.bincount(rows, minlength=len(self._nodes.nodes))

    def _rows_of_assumed(self) -> Rows:
        """The row of each nominated pod of the namespace: to these alone an empty selector applies as it reads.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, updateWithPod
        """
        namespace = self._pod.inter_pod.namespace
        return np.array([row for row, pod in self._nodes.assumed if pod.namespace == namespace], dtype=np.intp)

    def _included(self, constraint: SpreadConstraint) -> Mask:
        """The nodes that the policies of `constraint` let count."""
        included = np.ones(len(self._nodes.nodes), dtype=np.bool_)
        if constraint.honors_affinity:
            if self._matching is None:
                self._matching = required_affinity_matches(self._pod, self._nodes, self._expired)
            included &= self._matching
        if constraint.honors_taints:
            if self._untolerated is None:
                self._untolerated = untolerated(self._pod, self._nodes)
            included &= ~self._untolerated
        return included


def _summed(domains: Rows, counts: Column, size: int) -> Column:
    """What the nodes of each domain count together, of `size` domains; the last is none, and has 0."""
    return np.bincount(domains, weights=counts, minlength=size).astype(np.int64)


def _rounded(scores: NDArray[np.float64]) -> Column:
    """`scores` to the nearest integers, halves up."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)


def _normalized(scores: Column) -> Column:
    """The least of `scores` becomes MAX_NODE_SCORE, others less in proportion to the largest."""
    if not len(scores) or (largest := int(scores.max())) == 0:
        return np.full_like(scores, MAX_NODE_SCORE)
    return MAX_NODE_SCORE * (largest + int(scores.min()) - scores) // largest
