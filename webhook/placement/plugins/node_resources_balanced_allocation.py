"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly."""

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
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
        capacity = [each.capacity.take(rows) for each in offered]
        added = [min(requested.get(resource, 0), LARGEST_AMOUNT) for resource in counted]
        used = [
            _used(each.requested.take(rows), more, is_compared=is_compared)
            for each, more in zip(offered, added, strict=True)
        ]
        balance = ((1 - _deviation(used, capacity)) * MAX_NODE_SCORE).astype(np.int64)
        scores: Column = _HALF + (_HALF + balance[0] - balance[1]) // 2 if is_compared else balance[0]
        return scores


def _used(without: Column, added: int, *, is_compared: bool) -> NDArray[np.int64]:
    """Return the used amounts of a resource: a row with the pod and, with `is_compared`, a row without it."""
    used = np.empty((2 if is_compared else 1, len(without)), dtype=np.int64)
    np.add(without, added, out=used[0])
    used[1:] = without
    return used


def _deviation(used: list[NDArray[np.int64]], capacity: list[Column]) -> _Shares:
    """Return the standard deviation of the used shares of each node, summed in kube-scheduler's order.

    Only the resources that a node has count. The deviation is 0 for fewer than two resources.
    """
    has_all = all(bool(column.min() > 0) for column in capacity)
    divisors = capacity if has_all else [np.maximum(column, 1) for column in capacity]
    shares = [np.minimum(each / divisor, 1.0) for each, divisor in zip(used, divisors, strict=True)]
    if not has_all:
        return _deviation_among(shares, [column > 0 for column in capacity])
    if len(shares) == 2:
        half: _Shares = np.abs((shares[0] - shares[1]) / 2)
        return half
    mean = sum(shares[1:], shares[0]) / len(shares)
    distances = [share - mean for share in shares]
    squares = [distance * distance for distance in distances]
    deviation: _Shares = np.sqrt(sum(squares[1:], squares[0]) / len(shares))
    return deviation


def _deviation_among(shares: list[_Shares], has: list[Mask]) -> _Shares:
    """Return the deviation for nodes where some lack a resource."""
    count = np.sum(has, axis=0)
    total = np.zeros_like(shares[0])
    for share, present in zip(shares, has, strict=True):
        total = total + share * present
    mean = total / np.maximum(count, 1)
    squares = np.zeros_like(total)
    for share, present in zip(shares, has, strict=True):
        squares = squares + (share - mean) * (share - mean) * present
    deviation = np.sqrt(squares / np.maximum(count, 1))
    largest = np.max([np.where(present, share, 0.0) for share, present in zip(shares, has, strict=True)], axis=0)
    smallest = np.min([np.where(present, share, 1.0) for share, present in zip(shares, has, strict=True)], axis=0)
    return np.where(count == 2, np.abs((largest - smallest) / 2), np.where(count < 2, 0.0, deviation))
