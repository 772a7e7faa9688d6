"""PodTopologySpread: spread pods over topology domains."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import HOSTNAME_LABEL
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.interface import MAX_NODE_SCORE, Failure
from webhook.placement.framework.node_inclusion import required_affinity_matches, untolerated
from webhook.placement.pod.inter_pod_info import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULT_CONSTRAINTS,
    SpreadConstraint,
)
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_CONSTRAINTS_NOT_MATCH = "node(s) didn't match pod topology spread constraints"
ERR_REASON_NODE_LABEL_NOT_MATCH = f"{ERR_REASON_CONSTRAINTS_NOT_MATCH} (missing required label)"


class SpreadRoom(NamedTuple):
    """The room of each node by one constraint: how many `more` pods that `selector` selects it can take.

    It is negative if the pending pod exceeds the skew. Pods of the node count if it is in the mask `counted`.
    `unlabelled` are the nodes without the topology key.
    """

    selector: LabelSelector | None
    more: Column
    counted: Mask
    unlabelled: Mask


class PodTopologySpread:
    """Count the pods on each node once for each constraint, then sum over topology domains.

    `default_constraints` apply to pods without constraints, with the selector of their Services and controller. With
    `system_defaulted`, nodes that lack some labels of the default constraints are also scored.

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

    def concerns(self, pod: PodInfo, nodes: Snapshot) -> bool:
        """Return whether the pod has its own constraints or default constraints."""
        return bool(pod.inter_pod.spread or (self._default_constraints and _default_selector(pod, nodes)))

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes on which the pod exceeds the skew of a DoNotSchedule constraint, or that lack its label.

        The reason of a node is its first violated constraint.
        """
        constraints = self._constraints(pod, nodes, DO_NOT_SCHEDULE)
        if not constraints:
            return ()
        counter = _DomainCounter(pod, nodes, constraints, expired, require_all_topologies=True)
        skewed = np.zeros(len(nodes.nodes), dtype=np.bool_)
        unlabelled = np.zeros_like(skewed)
        for room in map(counter.room, in_time(constraints, expired)):
            unlabelled |= room.unlabelled & ~skewed
            skewed |= (room.more < 0) & ~unlabelled
        return (
            Failure(ERR_REASON_CONSTRAINTS_NOT_MATCH, skewed),
            Failure(ERR_REASON_NODE_LABEL_NOT_MATCH, unlabelled),
        )

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return a higher score for fewer selected pods in the domains, or None without ScheduleAnyway constraints.

        Nodes that lack a required label score 0. Counts are weighted by the number of domains.
        """
        constraints = self._constraints(pod, nodes, SCHEDULE_ANYWAY)
        if not constraints:
            return None
        requires_all = bool(pod.inter_pod.spread) or not self._system_defaulted
        counter = _DomainCounter(pod, nodes, constraints, expired, require_all_topologies=requires_all)
        scored = counter.labelled[rows]
        candidates = rows[scored]
        total = np.zeros(len(candidates), dtype=np.float64)
        for constraint in in_time(constraints, expired):
            total += counter.weighted(constraint, candidates)
        scores = np.zeros(len(rows), dtype=np.int64)
        scores[scored] = _normalized(_rounded(total))
        return scores

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether a DoNotSchedule constraint applies."""
        return bool(self._constraints(pod, nodes, DO_NOT_SCHEDULE))

    def selectors(self, pod: PodInfo, nodes: Snapshot) -> list[LabelSelector | None]:
        """Return the selector of each DoNotSchedule constraint."""
        return [each.selector for each in self._constraints(pod, nodes, DO_NOT_SCHEDULE)]

    def rooms(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[SpreadRoom]:
        """Yield the room of the nodes next to the pod by each DoNotSchedule constraint."""
        constraints = self._constraints(pod, nodes, DO_NOT_SCHEDULE)
        counter = _DomainCounter(pod, nodes, constraints, expired, require_all_topologies=True)
        return map(counter.room, in_time(constraints, expired))

    def _constraints(self, pod: PodInfo, nodes: Snapshot, when_unsatisfiable: str) -> Sequence[SpreadConstraint]:
        """Return the constraints of one kind: those of the pod, or else the defaults with its default selector."""
        every = pod.inter_pod.spread or self._default_constraints
        found = [each for each in every if each.when_unsatisfiable == when_unsatisfiable]
        if pod.inter_pod.spread or not found:
            return found
        selector = _default_selector(pod, nodes)
        return [each._replace(selector=selector) for each in found] if selector else ()


def _default_selector(pod: PodInfo, nodes: Snapshot) -> LabelSelector:
    inter_pod = pod.inter_pod
    return nodes.workloads.default_selector(inter_pod.namespace, dict(inter_pod.labels), inter_pod.owner)


class _DomainCounter:
    """Count the pods of a namespace on nodes. `labelled` is a mask of the nodes that have the required labels."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Snapshot,
        constraints: Iterable[SpreadConstraint],
        expired: Expired,
        *,
        require_all_topologies: bool,
    ) -> None:
        self._pod = pod
        self._nodes = nodes
        self._expired = expired
        self._matching: Mask | None = None
        self._untolerated: Mask | None = None
        self.labelled = np.ones(len(nodes.nodes), dtype=np.bool_)
        for constraint in in_time(constraints if require_all_topologies else (), expired):
            self.labelled &= nodes.labels.domains(constraint.topology_key).codes >= 0

    def room(self, constraint: SpreadConstraint) -> SpreadRoom:
        """Return how many more selected pods the nodes can take before one more pod exceeds the skew."""
        codes, size = self._nodes.labels.domains(constraint.topology_key)
        counted = self.labelled & self._included(constraint)
        domains = codes[counted]
        matching = _summed(domains, self._on_nodes(constraint.selector)[counted], size + 1)
        existing, other_min = matching[np.bincount(domains, minlength=size + 1) > 0], np.zeros_like(matching)
        if len(existing) >= constraint.min_domains:
            # Pods that are added to a domain can only exceed the skew to the others.
            lowest, second = np.partition(np.append(existing, LARGEST_AMOUNT), 1)[:2]
            other_min = np.where(matching == lowest, second, lowest)
        self_match = int(selector_matches(constraint.selector, dict(self._pod.inter_pod.labels)))
        more = other_min + constraint.max_skew - self_match - matching
        return SpreadRoom(constraint.selector, more[codes], counted, codes < 0)

    def weighted(self, constraint: SpreadConstraint, rows: Rows) -> NDArray[np.float64]:
        """Return the weighted number of selected pods in the domain of each of `rows`, or 0 without the label."""
        codes, size = self._nodes.labels.domains(constraint.topology_key)
        here = codes[rows]
        on_nodes = self._on_nodes(constraint.selector)
        if constraint.topology_key == HOSTNAME_LABEL:
            domains, matching = len(rows), on_nodes[rows]
        else:
            domains = len(np.unique(here))
            counted = self.labelled & self._included(constraint) & (codes >= 0)
            matching = _summed(codes[counted], on_nodes[counted], size + 1)[here]
        weighted = matching * math.log(domains + 2) + (constraint.max_skew - 1)
        return np.where(here >= 0, weighted, 0.0)

    def _on_nodes(self, selector: LabelSelector | None) -> Column:
        """Return the number of pods that `selector` selects on each node. An empty selector selects none."""
        if selector == () and self._nodes.assumed:
            return np.bincount(self._rows_of_assumed(), minlength=len(self._nodes.nodes))
        namespaces = frozenset((self._pod.inter_pod.namespace,))
        rows = self._nodes.pods.rows_selected(namespaces, selector or None, self._expired, terminating=False)
        return np.bincount(rows, minlength=len(self._nodes.nodes))

    def _rows_of_assumed(self) -> Rows:
        """Return the row of each nominated pod of the namespace. An empty selector only selects these pods.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, updateWithPod
        """
        namespace = self._pod.inter_pod.namespace
        return np.array([row for row, pod in self._nodes.assumed if pod.namespace == namespace], dtype=np.intp)

    def _included(self, constraint: SpreadConstraint) -> Mask:
        """Return the nodes that count by nodeAffinityPolicy and nodeTaintsPolicy of `constraint`."""
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
    """Return the sum of `counts` for each of `size` domains, followed by a 0 for nodes in no domain."""
    return np.bincount(domains, weights=counts, minlength=size).astype(np.int64)


def _rounded(scores: NDArray[np.float64]) -> Column:
    """Round `scores` to the nearest integers, and halves up."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)


def _normalized(scores: Column) -> Column:
    """Scale `scores` so that the smallest becomes MAX_NODE_SCORE and larger ones become smaller."""
    if not len(scores) or (largest := int(scores.max())) == 0:
        return np.full_like(scores, MAX_NODE_SCORE)
    return MAX_NODE_SCORE * (largest + int(scores.min()) - scores) // largest
