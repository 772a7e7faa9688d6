"""The devices that can be reached from a node, pool by pool, as far as the requests of a pod are concerned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from webhook.cluster.dra.device import AttributeValue, Device, NodeAccess
from webhook.cluster.dra.device_class import Selectors
from webhook.cluster.dra.resource_slice import ResourceSlice, Slices
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.taints import NO_EXECUTE, NO_SCHEDULE
from webhook.placement.dra.allocator import FREE, REFUSED, TAINTED, TAKEN, Candidate, IndexedRequest
from webhook.placement.dra.counters import PoolCounters, parts_of
from webhook.placement.dra.selection import Selection, accessible_nodes


class SelectedRequest(NamedTuple):
    """A request, and all selectors that a device must satisfy: those of the class, then its own."""

    wanted: IndexedRequest
    selectors: Selectors


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """What a node has. `counters` are what pools have left of their counters, for the candidates that consume some.

    `is_odd`: a device, or its pool, is one that is not modelled, or not known to be selected. `is_incomplete`: a pool
    lacks slices; `is_invalid`: a pool has two devices of one name, or counters that do not fit together. Neither gives
    devices.
    """

    candidates: tuple[Candidate, ...]
    counters: tuple[tuple[int, ...], ...]
    is_odd: bool
    is_incomplete: bool
    is_invalid: bool


@dataclass(slots=True)
class _Gathered:
    candidates: list[Candidate] = field(default_factory=list)
    candidates_with_conditions: list[Candidate] = field(default_factory=list)
    counters: list[tuple[int, ...]] = field(default_factory=list)
    is_odd: bool = False
    is_incomplete: bool = False
    is_invalid: bool = False


class NodePools:
    """Tells for each node of `nodes` what it has of what is asked; `attributes` are those of the constraints.

    Where nodes are emptied, every device is free, and what keeps claims from one is taken to pass.

    Raises:
        DeadlineNearError: `expired()` holds.

    Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go
    """

    def __init__(
        self,
        slices: Slices,
        nodes: Snapshot,
        asks: Sequence[SelectedRequest],
        attributes: Sequence[str],
        expired: Expired,
    ) -> None:
        self._slices = slices
        self._nodes = nodes
        self._asks = asks
        self._attributes = attributes
        self._taken = {} if nodes.is_without_pods else nodes.devices.allocated
        self._shared_by_claims = {} if nodes.is_without_pods else nodes.devices.shared
        self._want_capacity = any(ask.wanted.request.capacity for ask in asks)
        self._counters = PoolCounters(slices, self._taken, self._shared_by_claims)
        self._selection = Selection(expired)
        self._known: dict[object, Candidate] = {}
        self._found: dict[int, list[tuple[int, Candidate | None]]] = {}
        self._reached: dict[int, list[Mask]] = {}
        self._shared = self._shared_of_rows(expired)

    def of(self, row: int) -> NodeDevices:
        """What the node in `row` has.

        Raises:
            SearchAbortedError: the selectors take too long.
            DeadlineNearError: `expired()` holds.
        """
        local = self._slices.of_node.get(self._nodes.nodes[row].node.name, ())
        gathered = _Gathered()
        for slices in _newest((*local, *self._shared[row])):
            self._add_pool(row, slices, gathered)
        # kube-scheduler prefers devices that need not be made ready.
        return NodeDevices(
            (*gathered.candidates, *gathered.candidates_with_conditions),
            tuple(gathered.counters),
            gathered.is_odd,
            gathered.is_incomplete,
            gathered.is_invalid,
        )

    def _shared_of_rows(self, expired: Expired) -> Sequence[tuple[ResourceSlice, ...]]:
        """The slices that are not of one node alone, for each node that it is reached from."""
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

    def _add_pool(self, row: int, slices: Sequence[ResourceSlice], gathered: _Gathered) -> None:
        """Add what a pool has for the node; `slices` are those of it that concern the node."""
        first = slices[0]
        if len(slices) != first.slice_count:
            everywhere = self._slices.of_pool[first.pool_name]
            if any(each.generation > first.generation for each in everywhere):
                # kube-scheduler passes such a pool over; once it is renewed, it may have devices for this node.
                gathered.is_incomplete |= self._nodes.is_without_pods
                return
            if sum(each.generation == first.generation for each in everywhere) != first.slice_count:
                gathered.is_incomplete = True
                return
        giving = slices
        if any(each.counter_sets for each in slices):
            giving = [each for each in slices if not each.counter_sets]
        names = frozenset[str]().union(*[each.device_names for each in giving])
        counters = self._counters.of(slices)
        if len(names) != sum(len(each.devices) for each in giving) or counters.is_invalid:
            gathered.is_invalid = True
            return
        found = [each for one in giving for each in self._candidates(row, one)]
        gathered.is_odd |= None in found or (counters.is_odd and bool(found))
        known = [each for each in found if each is not None]
        if counters.left and any(each.counters for each in known):
            known = [each._replace(pool=len(gathered.counters)) if each.counters else each for each in known]
            gathered.counters.append(counters.left)
        into = gathered.candidates
        if any(each.has_conditions for each in giving):
            into = gathered.candidates_with_conditions
        into += known

    def _candidates(self, row: int, resource_slice: ResourceSlice) -> Iterable[Candidate | None]:
        """What counts about each device that is asked for; None for one of which that is not known."""
        key = id(resource_slice)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._judged(resource_slice)
        reached = self._reached.get(key)
        if reached is None:
            return [candidate for _, candidate in found]
        return [candidate for place, candidate in found if reached[place][row]]

    def _judged(self, resource_slice: ResourceSlice) -> list[tuple[int, Candidate | None]]:
        """The devices that are asked for, by their places in the slice."""
        selected = [self._selection.taken(resource_slice, ask.selectors) for ask in self._asks]
        found: list[tuple[int, Candidate | None]] = []
        for place, (device, wanting) in enumerate(
            zip(resource_slice.devices, zip(*selected, strict=True), strict=True)
        ):
            if None in wanting or (True in wanting and device.allows_multiple_allocations and device.counters):
                found.append((place, None))
            elif True in wanting:
                found.append((place, self._candidate(device, wanting, resource_slice)))
        return found

    def _candidate(self, device: Device, wanting: Sequence[bool | None], resource_slice: ResourceSlice) -> Candidate:
        """What counts about a device that is asked for: one object for all that are alike."""
        values = tuple([device.attributes.get(name) for name in self._attributes]) if self._attributes else ()
        is_taken = device.name in self._taken.get(resource_slice.pool_name, ())
        consumed = self._shared_by_claims.get(resource_slice.pool_name, {}).get(device.name) or {}
        if not device.is_plain or self._want_capacity or consumed:
            candidate = self._parted(device, wanting, values, consumed, resource_slice, is_taken=is_taken)
            return self._known.setdefault(candidate, candidate)
        key = (wanting, is_taken, device.taints, values)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Candidate(self._states(device, wanting, is_taken=is_taken), values)
        return known

    def _parted(
        self,
        device: Device,
        wanting: Sequence[bool | None],
        values: tuple[AttributeValue | None, ...],
        consumed: Mapping[str, int],
        resource_slice: ResourceSlice,
        *,
        is_taken: bool,
    ) -> Candidate:
        """What counts about a device of whose capacities, or of the counters of whose pool, requests consume parts."""
        room = {name: capacity.value - consumed.get(name, 0) for name, capacity in device.capacity.items()}
        needs = [
            parts_of(device, ask.wanted.request, room) if wants else None
            for ask, wants in zip(self._asks, wanting, strict=True)
        ]
        places = self._counters.places(resource_slice)
        return Candidate(
            self._states(device, [each is not None for each in needs], is_taken=is_taken),
            values,
            tuple([each or (0,) * len(room) for each in needs]) if device.allows_multiple_allocations else None,
            tuple([room[name] for name in sorted(room)]) if device.allows_multiple_allocations else (),
            counters=tuple([(places[name], amount) for name, amount in device.counters if name in places]),
        )

    def _states(self, device: Device, wanting: Sequence[bool | None], *, is_taken: bool) -> tuple[int, ...]:
        return tuple(
            [
                self._state(device, ask, is_taken=is_taken) if wants else REFUSED
                for ask, wants in zip(self._asks, wanting, strict=True)
            ]
        )

    def _state(self, device: Device, ask: SelectedRequest, *, is_taken: bool) -> int:
        if is_taken and not ask.wanted.request.is_admin:
            return TAKEN
        return FREE if self._is_tolerated(device, ask) else TAINTED

    def _is_tolerated(self, device: Device, ask: SelectedRequest) -> bool:
        return self._nodes.is_without_pods or all(
            any(toleration.tolerates(taint) for toleration in ask.wanted.request.tolerations)
            for taint in device.taints
            if taint.effect in (NO_EXECUTE, NO_SCHEDULE)
        )


def _newest(slices: Iterable[ResourceSlice]) -> list[list[ResourceSlice]]:
    """The slices of the newest generation of each pool, pools and slices in the order of their names."""
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
