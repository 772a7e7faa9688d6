"""Partial allocation of devices: consumable capacities, and the counters of pools."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from webhook.cluster.dra.capacity import consumed
from webhook.cluster.dra.device import CounterName, Device
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.cluster.dra.resource_slice import PoolName, ResourceSlice, Slices
from webhook.kube.release import Change, Release


def consumed_capacity(
    device: Device, request: DeviceRequest, free_capacity: Mapping[str, int]
) -> tuple[int, ...] | None:
    """Return the amounts that `request` consumes, in the order of capacity names, or None if they are not free.

    Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go,
    CmpRequestOverCapacity
    """
    requested = dict(request.capacity)
    if not requested.keys() <= device.capacity.keys():
        return None
    amounts = []
    for name in sorted(device.capacity):
        amount = consumed(requested.get(name), device.capacity[name])
        if amount is None or amount > free_capacity[name]:
            return None
        amounts.append(amount)
    return tuple(amounts)


class FreeCounters(NamedTuple):
    """The remaining amounts, `left`, of the counters of a pool, in the order of their names.

    `is_invalid` is true if a counter set is duplicate, or a device consumes a counter that does not exist.
    `is_unpredictable` is true if the devices that kube-scheduler counts depend on the node that it evaluates first.
    """

    left: tuple[int, ...] = ()
    is_invalid: bool = False
    is_unpredictable: bool = False


_NO_COUNTERS = FreeCounters()


class PoolCounters:
    """Compute the remaining counters of pools, after the allocated devices.

    Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go,
    checkAvailableCounters, and pools_incubating.go, buildPool
    """

    def __init__(
        self,
        slices: Slices,
        taken: Mapping[PoolName, frozenset[str]],
        shared: Mapping[PoolName, Mapping[str, Any]],
        release: Release,
    ) -> None:
        self._slices = slices
        self._ambiguous = frozenset() if release.has(Change.COUNTERS_HAVE_A_DRIVER) else slices.ambiguous_pools
        self._taken = taken
        self._shared = shared
        self._left: dict[tuple[PoolName, int], FreeCounters] = {}
        self._places: dict[tuple[PoolName, int], dict[CounterName, int]] = {}

    def of(self, slices: Sequence[ResourceSlice]) -> FreeCounters:
        """Return the free counters of the pool that `slices` belong to."""
        key = slices[0].pool_name, slices[0].generation
        left = self._left.get(key)
        if left is None:
            everywhere = self._all_of(slices[0])
            has_counters = any(each.counter_sets or each.consumes_counters for each in everywhere)
            left = self._count(everywhere, self.places(slices[0])) if has_counters else _NO_COUNTERS
            self._left[key] = left
        return left

    def places(self, resource_slice: ResourceSlice) -> Mapping[CounterName, int]:
        """Return the index of each counter of the slice's pool."""
        key = resource_slice.pool_name, resource_slice.generation
        places = self._places.get(key)
        if places is None:
            names = {
                (counter_set, name)
                for each in self._all_of(resource_slice)
                for counter_set, counters in each.counter_sets
                for name in counters
            }
            places = self._places[key] = {name: place for place, name in enumerate(sorted(names))}
        return places

    def _all_of(self, resource_slice: ResourceSlice) -> list[ResourceSlice]:
        everywhere = self._slices.of_pool[resource_slice.pool_name]
        return [each for each in everywhere if each.generation == resource_slice.generation]

    def _count(self, slices: Sequence[ResourceSlice], places: Mapping[CounterName, int]) -> FreeCounters:
        if len(slices) != slices[0].slice_count or slices[0].pool in self._ambiguous:
            return FreeCounters(is_unpredictable=True)
        sets = [counter_set for each in slices for counter_set, _ in each.counter_sets]
        devices = [device for each in slices for device in each.devices]
        if len(set(sets)) != len(sets) or any(name not in places for each in devices for name, _ in each.counters):
            return FreeCounters(is_invalid=True)
        left = [0] * len(places)
        for each in slices:
            for counter_set, counters in each.counter_sets:
                for name, amount in counters.items():
                    left[places[counter_set, name]] = amount
        pool_name = slices[0].pool_name
        allocated = self._taken.get(pool_name, frozenset()) | self._shared.get(pool_name, {}).keys()
        for device in devices:
            for counter, amount in device.counters if device.name in allocated else ():
                left[places[counter]] -= amount
        return FreeCounters(tuple(left))
