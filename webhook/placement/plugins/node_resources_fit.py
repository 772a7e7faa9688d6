"""NodeResourcesFit: what a pod requests must be free, and the fuller or the emptier node is the better one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.resource_names import is_allocated_by_claim, is_scalar_resource
from webhook.placement.plugin import MAX_NODE_SCORE, Failure
from webhook.placement.pod_info import PodInfo

ERR_REASON_TOO_MANY_PODS = "Too many pods"


def least_requested_score(requested: Column, capacity: Column) -> Column:
    """The share of `capacity` (none 0) that is left free, in percent; 0 where more is requested than there is.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/least_allocated.go
    """
    free: Column = np.maximum(capacity - requested, 0)
    return free * MAX_NODE_SCORE // capacity


def most_requested_score(requested: Column, capacity: Column) -> Column:
    """The share of `capacity` (none 0) that is requested, in percent; 100 where more is requested than there is.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/most_allocated.go
    """
    used: Column = np.minimum(requested, capacity)
    return used * MAX_NODE_SCORE // capacity


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How a node is scored: by each of `resources`, with its weight."""

    score: Callable[[Column, Column], Column]
    resources: tuple[tuple[str, int], ...]


class NodeResourcesFit:
    """Filters by requests; scores by `strategy`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go and resource_allocation.go
    """

    name = "NodeResourcesFit"

    def __init__(self, strategy: ScoringStrategy) -> None:
        self._strategy = strategy

    def filter(self, pod: PodInfo, nodes: Snapshot) -> Sequence[Failure]:
        """The nodes that are short of something, by each of the things that they are short of."""
        failures = [Failure(ERR_REASON_TOO_MANY_PODS, nodes.load.pods >= nodes.allowed_pods)]
        for resource, amount in pod.requests:
            if not is_allocated_by_claim(resource):
                free = nodes.allocatable(resource) - nodes.requested(resource)
                failures.append(Failure(f"Insufficient {resource}", free < min(amount, LARGEST_AMOUNT)))
        return failures

    def skips(self, pod: PodInfo) -> bool:  # noqa: ARG002 - the contract of a plugin that scores
        """Never."""
        return False

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows) -> Column:
        """The weighted mean of the scores of the strategy's resources, `pod` counted in.

        A resource that a node does not have is left out there; so is a device that `pod` does not request.
        """
        amounts = dict(pod.scored)
        total = np.zeros(len(rows), dtype=np.int64)
        weights = np.zeros(len(rows), dtype=np.int64)
        for resource, weight in self._strategy.resources:
            amount = min(amounts.get(resource, 0), LARGEST_AMOUNT)
            if amount == 0 and is_scalar_resource(resource):
                continue
            capacity = nodes.allocatable(resource)[rows]
            requested = nodes.counted(resource)[rows] + amount
            weight_here = weight * (capacity > 0)
            total += weight_here * self._strategy.score(requested, np.maximum(capacity, 1))
            weights += weight_here
        return total // np.maximum(weights, 1)
