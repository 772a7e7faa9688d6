"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly."""

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.pod.amounts import CPU, MEMORY, is_scalar_resource
from webhook.kube.release import Change, Release
from webhook.placement.dra.extended_resource_totals import amounts, are_totals_known, counts_devices
from webhook.placement.framework.interface import MAX_NODE_SCORE, Certainty, Scope
from webhook.placement.pod.pod_info import PodInfo

_HALF = MAX_NODE_SCORE // 2

_Shares = NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """Score higher if the pod makes the used shares of `resources` on the node more equal.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    """

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.NODE

    def __init__(self, resources: tuple[str, ...] = (CPU, MEMORY)) -> None:
        self._resources = resources

    def certainty(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Certainty:
        """Return whether the devices that back resources are known, and whether kube-scheduler counts them.

        The verdict is not certain either, because kube-scheduler fails if it evaluates a selector of a DeviceClass
        here.
        """
        counted = [each for each in self._resources if counts_devices(pod, each, nodes)]
        classes = [nodes.devices.class_of(each) for each in counted]
        return Certainty(
            all(are_totals_known(pod, each, nodes, expired) for each in counted),
            all(each is not None and not each.selectors for each in classes),
        )

    def _is_compared(self, release: Release) -> bool:
        return release.has(Change.BALANCE_IS_COMPARED)

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return about 75 if `pod` does not change the balance, up to 100 if it improves it, down to 50 otherwise.

        Before 1.36, return the balance with `pod`, from 50 to 100. Resources that a node does not have do not count,
        and neither do extended resources that `pod` does not request. The result is None if `pod` requests none of the
        resources.
        """
        is_compared = self._is_compared(nodes.release)
        requested = dict(pod.requests)
        if requested.keys().isdisjoint(self._resources):
            return None
        counted = [each for each in self._resources if requested.get(each) or not is_scalar_resource(each)]
        if len(counted) < 2:
            return np.full(len(rows), _HALF + _HALF // 2 if is_compared else MAX_NODE_SCORE)
        offered = [amounts(pod, each, nodes.requested(each), nodes, expired) for each in counted]
        capacity = np.array([[each.capacity.take(rows)] for each in offered])
        # With the pod, and without it to compare.
        used = np.array([[each.requested.take(rows)] * (2 if is_compared else 1) for each in offered])
        for place, resource in enumerate(counted):
            used[place, 0] += min(requested.get(resource, 0), LARGEST_AMOUNT)
        balance = ((1 - _deviation(used, capacity)) * MAX_NODE_SCORE).astype(np.int64)
        scores: Column = _HALF + (_HALF + balance[0] - balance[1]) // 2 if is_compared else balance[0]
        return scores


def _deviation(used: NDArray[np.int64], capacity: NDArray[np.int64]) -> _Shares:
    """Return the standard deviation of the used shares of each node.

    The first axis are the resources, of which only those that a node has count, and the last one the nodes. The
    deviation is 0 for fewer than two resources. Shares are added in kube-scheduler's order, which `np.sum` does not
    promise.
    """
    has = capacity > 0
    if np.count_nonzero(has) < has.size:
        return _deviation_among(np.minimum(used / np.maximum(capacity, 1), 1.0), has)
    shares = np.minimum(used / capacity, 1.0)
    if len(shares) == 2:
        half: _Shares = np.abs((shares[0] - shares[1]) / 2)
        return half
    distances = shares - sum(shares) / len(shares)
    deviation: _Shares = np.sqrt(sum(distances * distances) / len(shares))
    return deviation


def _deviation_among(shares: _Shares, has: NDArray[np.bool_]) -> _Shares:
    """Return the deviation for nodes where some lack a resource."""
    count = has.sum(axis=0)
    distances = shares - sum(shares * has) / np.maximum(count, 1)
    deviation = np.sqrt(sum(distances * distances * has) / np.maximum(count, 1))
    span = np.where(has, shares, 0.0).max(axis=0) - np.where(has, shares, 1.0).min(axis=0)
    return np.where(count == 2, np.abs(span / 2), np.where(count < 2, 0.0, deviation))
