"""The devices of nodes for an extended resource that a DeviceClass backs, as kube-scheduler counts them for scores."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from webhook.cluster.dra.device import Device
from webhook.cluster.dra.device_class import DeviceClass
from webhook.cluster.dra.resource_slice import ResourceSlice
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.dra.device_selection import Selection, accessible_nodes, remembered
from webhook.placement.dra.step_budget import SearchAbortedError
from webhook.placement.pod.pod_info import PodInfo

_NOT_SET_WHEN_SCORING = "allowMultipleAllocations"


class Amounts(NamedTuple):
    """The capacity of each node for a resource, and the requested amount."""

    capacity: Column
    requested: Column


def amounts(pod: PodInfo, resource: str, requested: Column, nodes: Snapshot, expired: Expired) -> Amounts:
    """Return the capacity of each of `nodes` for `resource`, and the requested amount, including devices.

    Devices count if a node does not offer the resource itself. Unknown devices do not count.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    calculateResourceAllocatableRequest
    """
    capacity = nodes.allocatable(resource)
    if (
        not pod.by_container
        or not _is_requested(pod, resource)
        or (totals := _totals(resource, nodes, expired)) is None
    ):
        return Amounts(capacity, requested)
    counts = (capacity == 0) & (totals.capacity > 0)
    return Amounts(np.where(counts, totals.capacity, capacity), np.where(counts, totals.requested, requested))


def are_totals_known(pod: PodInfo, resource: str, nodes: Snapshot, expired: Expired) -> bool:
    """Return whether everything that `amounts` counts is known."""
    if not counts_devices(pod, resource, nodes):
        return True
    return nodes.devices.is_class_known(resource) and _totals(resource, nodes, expired) is not None


def counts_devices(pod: PodInfo, resource: str, nodes: Snapshot) -> bool:
    """Return whether devices of a class may count for `resource` on one of `nodes`."""
    return nodes.devices.back(resource) and _is_requested(pod, resource) and not nodes.allocatable(resource).all()


def _is_requested(pod: PodInfo, resource: str) -> bool:
    return any(name == resource for name, _ in pod.requests)


def _totals(resource: str, nodes: Snapshot, expired: Expired) -> Amounts | None:
    """Return the devices and the allocated devices of each node, or None if they are not known."""
    inputs = (nodes.labels, nodes.rows)
    return remembered(nodes, ("totals", resource), inputs, partial(_count_devices, resource, nodes, expired))


def _count_devices(resource: str, nodes: Snapshot, expired: Expired) -> Amounts | None:
    """Count the devices that the class selects in all slices, including older generations and invalid pools.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    calculateDRAResourceTotals
    """
    device_class, slices = nodes.devices.class_of(resource), nodes.devices.slices
    if device_class is None or slices is None or nodes.devices.claims is None:
        return None
    capacity = np.zeros(len(nodes.nodes), dtype=np.int64)
    requested = np.zeros(len(nodes.nodes), dtype=np.int64)
    selection = Selection(expired)
    for each in in_time([each for pool in slices.of_pool.values() for each in pool], expired):
        try:
            found = selection.taken(each, device_class.selectors)
        except SearchAbortedError:
            return None
        if None in found or _selects_differently_when_scoring(each, device_class):
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
    taken = nodes.devices.allocated.get(resource_slice.pool_name, ())
    shared = nodes.devices.shared.get(resource_slice.pool_name, {})
    totals.capacity[where] += len(devices)
    totals.requested[where] += sum(device.name in taken or device.name in shared for device in devices)


def _selects_differently_when_scoring(resource_slice: ResourceSlice, device_class: DeviceClass) -> bool:
    """Return whether selectors may select other devices for kube-scheduler's scores than for its allocation."""
    return any(each.allows_multiple_allocations for each in resource_slice.devices) and any(
        _NOT_SET_WHEN_SCORING in (expression or "") for expression in device_class.selectors
    )
