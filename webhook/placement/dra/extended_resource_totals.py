"""How many devices nodes have for an extended resource that a DeviceClass backs, as the scores count them."""

from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.dra.device import Device
from webhook.cluster.dra.device_class import DeviceClass
from webhook.cluster.dra.resource_slice import ResourceSlice, Slices
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.dra.selection import Selection, accessible_nodes
from webhook.placement.dra.step_budget import SearchAbortedError
from webhook.placement.pod.pod_info import PodInfo

# So many answers are kept, for as long as the device objects of the cluster hold.
_MOST_ANSWERS = 64
_NOT_SEEN = "allowMultipleAllocations"


class Amounts(NamedTuple):
    """What each node offers of a resource, and what of it is requested."""

    capacity: Column
    requested: Column


def amounts(pod: PodInfo, resource: str, requested: Column, nodes: Snapshot, expired: Expired) -> Amounts:
    """Return what each of `nodes` offers of `resource`, and what of it is `requested`, devices of a class counted.

    Devices count where a node does not offer the resource itself. What is not known of them is left out.

    Raises:
        DeadlineNearError: `expired()` holds.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    calculateResourceAllocatableRequest
    """
    capacity = nodes.allocatable(resource)
    if not pod.by_container or not _is_asked(pod, resource) or (totals := _totals(resource, nodes, expired)) is None:
        return Amounts(capacity, requested)
    counts = (capacity == 0) & (totals.capacity > 0)
    return Amounts(np.where(counts, totals.capacity, capacity), np.where(counts, totals.requested, requested))


def are_known(pod: PodInfo, resource: str, nodes: Snapshot, expired: Expired) -> bool:
    """Return whether all is known that `amounts` counts.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    if not is_counted(pod, resource, nodes):
        return True
    return nodes.devices.is_class_known(resource) and _totals(resource, nodes, expired) is not None


def is_counted(pod: PodInfo, resource: str, nodes: Snapshot) -> bool:
    """Return whether devices of a class may count for `resource` on one of `nodes`."""
    return nodes.devices.back(resource) and _is_asked(pod, resource) and not nodes.allocatable(resource).all()


def _is_asked(pod: PodInfo, resource: str) -> bool:
    return any(name == resource for name, _ in pod.requests)


class _Answer(NamedTuple):
    facts: tuple[object, ...]
    totals: Amounts | None


def _totals(resource: str, nodes: Snapshot, expired: Expired) -> Amounts | None:
    """Return the devices of each node, and those of them that claims have; None where that is not known."""
    answers: dict[Any, _Answer] = nodes.devices.answers
    key = ("totals", resource)
    facts = (nodes.labels, nodes.rows)
    answer = answers.get(key)
    if answer is None or not all(map(is_, answer.facts, facts)):
        if len(answers) >= _MOST_ANSWERS:
            answers.clear()
        device_class, slices = nodes.devices.class_of(resource), nodes.devices.slices
        known = device_class is not None and slices is not None and nodes.devices.claims is not None
        totals = _counted(device_class, slices, nodes, expired) if known and device_class and slices else None
        answer = answers[key] = _Answer(facts, totals)
    return answer.totals


def _counted(device_class: DeviceClass, slices: Slices, nodes: Snapshot, expired: Expired) -> Amounts | None:
    """Return the devices that the class takes, in all slices: older generations and broken pools are counted, too.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    calculateDRAResourceTotals
    """
    capacity = np.zeros(len(nodes.nodes), dtype=np.int64)
    requested = np.zeros(len(nodes.nodes), dtype=np.int64)
    selection = Selection(expired)
    for each in in_time([each for pool in slices.of_pool.values() for each in pool], expired):
        try:
            found = selection.taken(each, device_class.selectors)
        except SearchAbortedError:
            return None
        if None in found or _is_seen_otherwise(each, device_class):
            return None
        selected = [device for device, is_selected in zip(each.devices, found, strict=True) if is_selected]
        if each.access is not None:
            _count(selected, each, accessible_nodes(each.access, nodes), Amounts(capacity, requested), nodes)
            continue
        for device in in_time(selected, expired):
            _count([device], each, accessible_nodes(device.access, nodes), Amounts(capacity, requested), nodes)
    return Amounts(capacity, requested)


def _count(
    devices: Sequence[Device], resource_slice: ResourceSlice, where: Mask | list[int], totals: Amounts, nodes: Snapshot
) -> None:
    """Add `devices` of the slice to `totals` of the nodes `where` they are reached from."""
    taken = nodes.devices.allocated.get(resource_slice.pool_name, ())
    shared = nodes.devices.shared.get(resource_slice.pool_name, {})
    totals.capacity[where] += len(devices)
    totals.requested[where] += sum(device.name in taken or device.name in shared for device in devices)


def _is_seen_otherwise(resource_slice: ResourceSlice, device_class: DeviceClass) -> bool:
    """Return whether kube-scheduler shows selectors something else when it scores than when it allocates."""
    return any(each.allows_multiple_allocations for each in resource_slice.devices) and any(
        _NOT_SEEN in (expression or "") for expression in device_class.selectors
    )
