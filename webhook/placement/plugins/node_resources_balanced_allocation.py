"""NodeResourcesBalancedAllocation: better where cpu and memory come to be used alike."""

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.resource_names import CPU, MEMORY
from webhook.placement.plugin import MAX_NODE_SCORE
from webhook.placement.pod_info import PodInfo

_HALF = MAX_NODE_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Scores by how much the pod evens out the used shares of cpu and memory, its two default resources.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    """

    name = "NodeResourcesBalancedAllocation"

    def skips(self, pod: PodInfo) -> bool:
        """Where `pod` requests neither cpu nor memory."""
        return not any(resource in (CPU, MEMORY) for resource, _ in pod.requests)

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows) -> Column:
        """About 75 where `pod` changes nothing, towards 100 where it evens out, towards 50 where it unbalances."""
        amounts = dict(pod.requests)
        capacity = [nodes.allocatable(resource)[rows] for resource in (CPU, MEMORY)]
        without = [nodes.requested(resource)[rows] for resource in (CPU, MEMORY)]
        added = [min(amounts.get(resource, 0), LARGEST_AMOUNT) for resource in (CPU, MEMORY)]
        has_both = (capacity[0] > 0) & (capacity[1] > 0)
        divisors = [np.maximum(each, 1) for each in capacity]
        score_with = _balance(without[0] + added[0], without[1] + added[1], divisors, has_both)
        score_without = _balance(without[0], without[1], divisors, has_both)
        return _HALF + (_HALF + score_with - score_without) // 2


def _balance(cpu: Column, memory: Column, divisors: list[Column], has_both: NDArray[np.bool_]) -> Column:
    """100 less the standard deviation of the two shares, in percent; a node with one of them is in balance."""
    cpu_share = np.minimum(cpu / divisors[0], 1.0)
    memory_share = np.minimum(memory / divisors[1], 1.0)
    deviation = np.abs((cpu_share - memory_share) / 2) * has_both
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
