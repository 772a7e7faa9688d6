"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used evenly."""

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.release import Change, Release
from webhook.kube.resource_names import CPU, MEMORY, is_scalar_resource
from webhook.placement.dra.extended_resource_totals import amounts, are_totals_known, counts_devices
from webhook.placement.framework.interface import MAX_NODE_SCORE, Certainty
from webhook.placement.pod.pod_info import PodInfo

_HALF = MAX_NODE_SCORE // 2

_Shares = NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """Score by how much the pod balances the used shares of `resources`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, resources: tuple[str, ...] = (CPU, MEMORY)) -> None:
        self._resources = resources

    def skips(self, pod: PodInfo) -> bool:
        """Return whether `pod` requests none of the resources."""
        return not any(resource in self._resources for resource, _ in pod.requests)

    def certainty(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Certainty:
        """Return whether the devices that back resources are known, and whether kube-scheduler counts them.

        kube-scheduler fails if it evaluates a selector of a DeviceClass here.
        """
        counted = [each for each in self._resources if counts_devices(pod, each, nodes)]
        classes = [nodes.devices.class_of(each) for each in counted]
        return Certainty(
            all(are_totals_known(pod, each, nodes, expired) for each in counted),
            all(each is not None and not each.selectors for each in classes),
        )

    def _is_compared(self, release: Release) -> bool:
        return release.has(Change.BALANCE_IS_COMPARED)

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """Return about 75 if `pod` does not change the balance, up to 100 if it improves it, down to 50 otherwise.

        Before 1.36: return the balance with `pod`, from 50 to 100.
        Resources that a node does not have do not count; nor do extended ones that `pod` does not request.
        """
        is_compared = self._is_compared(nodes.release)
        requested = dict(pod.requests)
        counted = [each for each in self._resources if requested.get(each) or not is_scalar_resource(each)]
        offered = [amounts(pod, each, nodes.requested(each), nodes, expired) for each in counted]
        capacity = [each.capacity[rows] for each in offered]
        without = [each.requested[rows] for each in offered]
        added = [min(requested.get(resource, 0), LARGEST_AMOUNT) for resource in counted]
        if len(counted) == 2:
            return _scores_of_two(capacity, without, added, is_compared=is_compared)
        has = [each > 0 for each in capacity]
        divisors = [np.maximum(each, 1) for each in capacity]
        score_with = _balance([used + more for used, more in zip(without, added, strict=True)], divisors, has)
        if not is_compared:
            return score_with
        score_without = _balance(without, divisors, has)
        return _HALF + (_HALF + score_with - score_without) // 2


def _scores_of_two(capacity: list[Column], without: list[Column], added: list[int], *, is_compared: bool) -> Column:
    """Return the scores for two resources; the two rows of each array are with the pod and without it.

    The standard deviation counts if a node has both; a node with one of them is balanced.
    """
    has_all = bool(capacity[0].min() > 0 and capacity[1].min() > 0)
    shares: list[_Shares] = []
    for column, used, more in zip(capacity, without, added, strict=True):
        both_used = np.empty((2, len(used)), dtype=np.int64)
        np.add(used, more, out=both_used[0])
        both_used[1] = used
        shares.append(np.minimum(both_used / (column if has_all else np.maximum(column, 1)), 1.0))
    deviation = np.abs((shares[0] - shares[1]) / 2)
    if not has_all:
        deviation = deviation * (np.minimum(capacity[0], capacity[1]) > 0)
    balance = ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
    scores: Column = _HALF + (_HALF + balance[0] - balance[1]) // 2 if is_compared else balance[0]
    return scores


def _balance(used: list[Column], divisors: list[Column], has: list[Mask]) -> Column:
    """Return 100 minus the standard deviation of the used shares, in percent."""
    shares = [np.minimum(each / divisor, 1.0) for each, divisor in zip(used, divisors, strict=True)]
    return ((1 - _deviation(shares, has)) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(shares: list[_Shares], has: list[Mask]) -> _Shares:
    """Return the standard deviation over the resources of each node, summed in kube-scheduler's order."""
    if not shares:
        return np.zeros(0, dtype=np.float64)
    if len(shares) > 2 and all(present.all() for present in has):
        mean = sum(shares[1:], shares[0]) / len(shares)
        distances = [(share - mean) * (share - mean) for share in shares]
        deviation: _Shares = np.sqrt(sum(distances[1:], distances[0]) / len(shares))
        return deviation
    count = np.sum(has, axis=0)
    total = np.zeros(len(count), dtype=np.float64)
    for share, present in zip(shares, has, strict=True):
        total = total + share * present
    mean = total / np.maximum(count, 1)
    squares = np.zeros(len(count), dtype=np.float64)
    for share, present in zip(shares, has, strict=True):
        squares = squares + (share - mean) * (share - mean) * present
    deviation = np.sqrt(squares / np.maximum(count, 1))
    largest = np.max([np.where(present, share, 0.0) for share, present in zip(shares, has, strict=True)], axis=0)
    smallest = np.min([np.where(present, share, 1.0) for share, present in zip(shares, has, strict=True)], axis=0)
    return np.where(count == 2, np.abs((largest - smallest) / 2), np.where(count < 2, 0.0, deviation))
