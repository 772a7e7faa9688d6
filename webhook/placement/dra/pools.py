"""The devices, by pool, that a node can access and that a pod's requests select."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import gt

import numpy as np

from webhook.cluster.dra.device import AttributeValue, Device, DeviceId, NodeAccess
from webhook.cluster.dra.resource_slice import ResourceSlice, Slices
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE
from webhook.kube.release import Change
from webhook.placement.dra.counters import PoolCounters, consumed_capacity
from webhook.placement.dra.device_allocator import ALLOCATED, FREE, NOT_SELECTED, TAINTED, Candidate, IndexedRequest
from webhook.placement.dra.device_selection import Selection, accessible_nodes


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a node. `counters` are the free counters of the pools, for candidates that consume counters.

    `is_unpredictable` is true if a device or its pool is not modelled, or it is not known whether a device is selected.
    `is_incomplete` is true if a pool lacks slices. `is_invalid` is true if a pool has two devices of one name, or
    inconsistent counters. Incomplete and invalid pools give no devices.
    """

    candidates: tuple[Candidate, ...]
    counters: tuple[tuple[int, ...], ...]
    is_unpredictable: bool
    is_incomplete: bool
    is_invalid: bool


@dataclass(slots=True)
class _NodeDevicesBuilder:
    candidates: list[Candidate] = field(default_factory=list)
    candidates_with_conditions: list[Candidate] = field(default_factory=list)
    counters: list[tuple[int, ...]] = field(default_factory=list)
    is_unpredictable: bool = False
    is_incomplete: bool = False
    is_invalid: bool = False


class NodePools:
    """Find the devices of each of `nodes` that `requests` select. `attributes` are those that the constraints compare.

    On nodes without pods, every device is free and every device taint is tolerated.

    Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go
    """

    def __init__(
        self,
        slices: Slices,
        nodes: Snapshot,
        requests: Sequence[IndexedRequest],
        attributes: Sequence[str],
        expired: Expired,
    ) -> None:
        self._slices = slices
        self._nodes = nodes
        self._requests = requests
        self._attributes = attributes
        self._taken = {} if nodes.is_without_pods else nodes.devices.allocated
        self._shared_by_claims = {} if nodes.is_without_pods else nodes.devices.shared
        self._requests_capacity = any(each.request.capacity for each in requests)
        self._counters = PoolCounters(slices, self._taken, self._shared_by_claims, nodes.release)
        self._taint_rules = nodes.devices.taint_rules if nodes.release.has(Change.DEVICE_TAINT_RULES) else ()
        self._needs_all = nodes.release.has(Change.ALL_DEVICES_NEED_CAPACITY)
        self._selection = Selection(expired)
        self._known: dict[object, Candidate] = {}
        self._found: dict[int, list[tuple[int, Candidate | None]]] = {}
        self._reached: dict[int, list[Mask]] = {}
        self._shared = self._shared_of_rows(expired)

    def of(self, row: int) -> NodeDevices:
        """Return the devices of the node in `row`.

        Raises:
            SearchAbortedError: the selectors take too long.
        """
        local = self._slices.of_node.get(self._nodes.nodes[row].node.name, ())
        builder = _NodeDevicesBuilder()
        for slices in _newest((*local, *self._shared[row])):
            self._add_pool(row, slices, builder)
        # kube-scheduler prefers devices without binding conditions.
        return NodeDevices(
            (*builder.candidates, *builder.candidates_with_conditions),
            tuple(builder.counters),
            builder.is_unpredictable,
            builder.is_incomplete,
            builder.is_invalid,
        )

    def _shared_of_rows(self, expired: Expired) -> Sequence[tuple[ResourceSlice, ...]]:
        """Return for each node the accessible slices that do not belong to one node."""
        count = len(self._nodes.nodes)
        if not self._slices.shared:
            return [()] * count
        masks = np.array([self._relevant(each) for each in in_time(self._slices.shared, expired)])
        known: dict[bytes, tuple[ResourceSlice, ...]] = {}
        found = []
        for key, relevant in zip(np.packbits(masks, axis=0).T, masks.T, strict=True):
            packed = key.tobytes()
            if packed not in known:
                known[packed] = tuple(self._slices.shared[place] for place in np.flatnonzero(relevant).tolist())
            found.append(known[packed])
        return found

    def _relevant(self, resource_slice: ResourceSlice) -> Mask:
        if resource_slice.counter_sets:
            return np.ones(len(self._nodes.nodes), dtype=np.bool_)
        if resource_slice.access is not None:
            return self._reaches(resource_slice.access)
        masks = [self._reaches(device.access) for device in resource_slice.devices]
        self._reached[id(resource_slice)] = masks
        relevant: Mask = np.logical_or.reduce([np.zeros(len(self._nodes.nodes), dtype=np.bool_), *masks])
        return relevant

    def _reaches(self, access: NodeAccess) -> Mask:
        where = accessible_nodes(access, self._nodes)
        mask = np.zeros(len(self._nodes.nodes), dtype=np.bool_)
        mask[where] = True
        return mask

    def _add_pool(self, row: int, slices: Sequence[ResourceSlice], builder: _NodeDevicesBuilder) -> None:
        """Add the devices of a pool for the node; `slices` are the slices of the pool that the node can access."""
        first = slices[0]
        if len(slices) != first.slice_count:
            everywhere = self._slices.of_pool[first.pool_name]
            if any(each.generation > first.generation for each in everywhere):
                # kube-scheduler skips such a pool; its next generation may have devices for this node.
                builder.is_incomplete |= self._nodes.is_without_pods
                return
            if sum(each.generation == first.generation for each in everywhere) != first.slice_count:
                builder.is_incomplete = True
                return
        device_slices = slices
        if any(each.counter_sets for each in slices):
            device_slices = [each for each in slices if not each.counter_sets]
        names = frozenset[str]().union(*[each.device_names for each in device_slices])
        counters = self._counters.of(slices)
        if len(names) != sum(len(each.devices) for each in device_slices) or counters.is_invalid:
            builder.is_invalid = True
            return
        found = [each for one in device_slices for each in self._candidates(row, one)]
        builder.is_unpredictable |= None in found or (counters.is_unpredictable and bool(found))
        known = [each for each in found if each is not None]
        if counters.left and any(each.counters for each in known):
            known = [each._replace(pool=len(builder.counters)) if each.counters else each for each in known]
            builder.counters.append(counters.left)
        into = builder.candidates
        if any(each.has_conditions for each in device_slices):
            into = builder.candidates_with_conditions
        into += known

    def _candidates(self, row: int, resource_slice: ResourceSlice) -> Iterable[Candidate | None]:
        """Return a candidate for each selected device, or None if it is not known whether the device is selected."""
        key = id(resource_slice)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._evaluated(resource_slice)
        reached = self._reached.get(key)
        if reached is None:
            return [candidate for _, candidate in found]
        return [candidate for place, candidate in found if reached[place][row]]

    def _evaluated(self, resource_slice: ResourceSlice) -> list[tuple[int, Candidate | None]]:
        """Return the selected devices, each with its index in the slice."""
        selected = [self._selection.taken(resource_slice, each.selectors) for each in self._requests]
        found: list[tuple[int, Candidate | None]] = []
        for place, (device, is_selected) in enumerate(
            zip(resource_slice.devices, zip(*selected, strict=True), strict=True)
        ):
            if None in is_selected or (True in is_selected and device.allows_multiple_allocations and device.counters):
                found.append((place, None))
            elif True in is_selected:
                found.append((place, self._candidate(device, is_selected, resource_slice)))
        return found

    def _candidate(
        self, device: Device, is_selected: Sequence[bool | None], resource_slice: ResourceSlice
    ) -> Candidate:
        """Return the candidate of a selected device. Equal devices share one object."""
        if self._taint_rules:
            identity = DeviceId(resource_slice.driver, resource_slice.pool, device.name)
            added = [each.taint for each in self._taint_rules if each.selects(identity)]
            device = replace(device, taints=(*device.taints, *added))
        values = tuple([device.attributes.get(name) for name in self._attributes]) if self._attributes else ()
        is_taken = device.name in self._taken.get(resource_slice.pool_name, ())
        consumed = self._shared_by_claims.get(resource_slice.pool_name, {}).get(device.name) or {}
        if not device.is_plain or self._requests_capacity or consumed:
            candidate = self._partial_candidate(
                device, is_selected, values, consumed, resource_slice, is_taken=is_taken
            )
            return self._known.setdefault(candidate, candidate)
        key = (is_selected, is_taken, device.taints, values)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Candidate(self._states(device, is_selected, is_taken=is_taken), values)
        return known

    def _partial_candidate(
        self,
        device: Device,
        is_selected: Sequence[bool | None],
        values: tuple[AttributeValue | None, ...],
        consumed: Mapping[str, int],
        resource_slice: ResourceSlice,
        *,
        is_taken: bool,
    ) -> Candidate:
        """Return the candidate of a device with consumable capacities or counters."""
        whole_capacity = {name: capacity.value for name, capacity in device.capacity.items()}
        free_capacity = {name: value - consumed.get(name, 0) for name, value in whole_capacity.items()}
        needs = [
            consumed_capacity(
                device,
                indexed.request,
                whole_capacity if self._needs_all and indexed.request.takes_all else free_capacity,
            )
            if is_wanted
            else None
            for indexed, is_wanted in zip(self._requests, is_selected, strict=True)
        ]
        free = [free_capacity[name] for name in sorted(free_capacity)]
        # A request for all devices has to have those too that have no capacity left.
        lacking = [need is not None and any(map(gt, need, free)) for need in needs]
        states = self._states(device, [each is not None for each in needs], is_taken=is_taken)
        places = self._counters.places(resource_slice)
        return Candidate(
            tuple([TAINTED if lacks else state for lacks, state in zip(lacking, states, strict=True)]),
            values,
            tuple([each or (0,) * len(free_capacity) for each in needs])
            if device.allows_multiple_allocations
            else None,
            tuple(free) if device.allows_multiple_allocations else (),
            counters=tuple([(places[name], amount) for name, amount in device.counters if name in places]),
        )

    def _states(self, device: Device, is_selected: Sequence[bool | None], *, is_taken: bool) -> tuple[int, ...]:
        return tuple(
            [
                self._state(device, indexed, is_taken=is_taken) if is_wanted else NOT_SELECTED
                for indexed, is_wanted in zip(self._requests, is_selected, strict=True)
            ]
        )

    def _state(self, device: Device, indexed: IndexedRequest, *, is_taken: bool) -> int:
        if is_taken and not indexed.request.is_admin:
            return ALLOCATED
        return FREE if self._is_tolerated(device, indexed) else TAINTED

    def _is_tolerated(self, device: Device, indexed: IndexedRequest) -> bool:
        return self._nodes.is_without_pods or all(
            any(toleration.tolerates(taint) for toleration in indexed.request.tolerations)
            for taint in device.taints
            if taint.effect in (NO_EXECUTE, NO_SCHEDULE)
        )


def _newest(slices: Iterable[ResourceSlice]) -> list[list[ResourceSlice]]:
    """Return the slices of the newest generation of each pool. Pools and slices are sorted by name."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        known = pools.setdefault(each.pool_name, [])
        if known and each.generation > known[0].generation:
            known.clear()
        if not known or each.generation == known[0].generation:
            known.append(each)
    if len(pools) == 1:
        return [sorted(known, key=_name) for known in pools.values()]
    return [sorted(pools[name], key=_name) for name in sorted(pools)]


def _name(resource_slice: ResourceSlice) -> str:
    return resource_slice.name
