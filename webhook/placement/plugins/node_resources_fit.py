"""NodeResourcesFit: the requests of a pod must be free; prefer the most or the least allocated node."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import CPU, MEMORY, is_extended_resource, is_scalar_resource
from webhook.kube.release import Change
from webhook.placement.dra.extended_resource_totals import amounts, are_totals_known
from webhook.placement.framework.interface import MAX_NODE_SCORE, Certainty, Failure, Scope
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_TOO_MANY_PODS = "Too many pods"
_INSUFFICIENT = "Insufficient "


def least_requested_score(requested: Column, capacity: Column) -> Column:
    """Return the free share of `capacity` (never 0) in percent, or 0 if more is requested than the capacity.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/least_allocated.go
    """
    free: Column = np.maximum(capacity - requested, 0)
    return free * MAX_NODE_SCORE // capacity


def most_requested_score(requested: Column, capacity: Column) -> Column:
    """Return the requested share of `capacity` (never 0) in percent, or 100 if more is requested than the capacity.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/most_allocated.go
    """
    used: Column = np.minimum(requested, capacity)
    return used * MAX_NODE_SCORE // capacity


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """The score function for a resource of a node, and the scored `resources` with their weights.

    `counts_zeros` is true if a resource that scores 0 counts in the mean, which is rounded down. Otherwise it does not
    count, and the mean is rounded to the nearest integer.
    """

    score: Callable[[Column, Column], Column] = least_requested_score
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    counts_zeros: bool = True


def insufficient(resource: str) -> str:
    """Return the rejection reason of a node that has too little of `resource`."""
    return _INSUFFICIENT + resource


def missing_resource(reason: str) -> str | None:
    """Return the insufficient resource that `reason` names, or None if `reason` is not about a resource."""
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else None


class NodeResourcesFit:
    """Filter by requests, except `ignored` extended resources and those of `ignored_groups`; score by `strategy`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go and resource_allocation.go
    """

    name = "NodeResourcesFit"
    scope = Scope.NODE

    def __init__(
        self,
        strategy: ScoringStrategy = ScoringStrategy(),
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
    ) -> None:
        self._strategy = strategy
        self._ignored = ignored
        self._ignored_groups = ignored_groups

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Failure]:
        """Yield the nodes that have too little of a resource or too many pods, by resource.

        Resources that a DeviceClass backs are checked by DynamicResources on nodes that do not offer them.
        """
        yield Failure(ERR_REASON_TOO_MANY_PODS, nodes.load.pods >= nodes.allowed_pods)
        has_devices = nodes.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        for resource, amount in in_time(pod.requests, expired):
            if not self._is_ignored(resource):
                offered = nodes.allocatable(resource)
                short = offered - nodes.requested(resource) < min(amount, LARGEST_AMOUNT)
                if has_devices and nodes.devices.back(resource):
                    short &= offered > 0
                # Yielded one by one: a pod can name ten thousand resources, and a mask has an entry for each node.
                yield Failure(insufficient(resource), short)

    def counted(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        """Yield the resources that `pod` requests and the filter does not ignore, with their amounts."""
        return ((resource, amount) for resource, amount in pod.requests if not self._is_ignored(resource))

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups

    def certainty(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Certainty:
        """Return the certainty. Scores need the devices of a resource that a DeviceClass backs."""
        return Certainty(
            all(are_totals_known(pod, resource, nodes, expired) for resource, _ in self._strategy.resources)
        )

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """Return the weighted mean of the scores of the strategy's resources, with `pod` on the node.

        Resources that a node does not have do not count, and neither do extended resources that `pod` does not request.
        """
        strategy = self._strategy
        scored = dict(pod.scoring_requests)
        total = np.zeros(len(rows), dtype=np.int64)
        # A number as long as all nodes have all resources that count.
        weights: int | Column = 0
        for resource, weight in strategy.resources:
            amount = min(scored.get(resource, 0), LARGEST_AMOUNT)
            if amount == 0 and is_scalar_resource(resource):
                continue
            offered = amounts(pod, resource, nodes.non_zero_requested(resource), nodes, expired)
            capacity = offered.capacity.take(rows)
            requested = offered.requested.take(rows) + amount
            if strategy.counts_zeros and np.count_nonzero(capacity) == len(rows):
                total += weight * strategy.score(requested, capacity)
                weights = weights + weight
                continue
            score = strategy.score(requested, np.maximum(capacity, 1))
            counts = capacity > 0 if strategy.counts_zeros else (capacity > 0) & (score > 0)
            weight_here = weight * counts
            total += weight_here * score
            weights = weights + weight_here
        weights = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
        return total // weights if strategy.counts_zeros else (2 * total + weights) // (2 * weights)
