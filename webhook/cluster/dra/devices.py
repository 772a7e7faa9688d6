"""The device objects of a cluster: classes, claims, and the slices that say which devices there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.dra.device_class import DeviceClass
from webhook.cluster.dra.resource_claim import Allocation, ResourceClaim
from webhook.cluster.dra.resource_slice import PoolName, ResourceSlice, Slices
from webhook.kube.amounts import sum_of
from webhook.kube.resource_names import DEVICE_CLASS_PREFIX, device_class_of
from webhook.kube.volumes import PodReference

NamespacedName = tuple[str, str]
Consumed = Mapping[str, int]
"""What is consumed of the capacities of a device, in thousandths."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The device objects of a cluster by name; None where objects of that kind were not given, and nothing is known.

    `taken` are the names of the devices that claims have for themselves, by their pools; `shared` are those that
    claims have shares of, with what is consumed of them, None where nothing is. `by_resource` are the classes whose
    devices pods can request by an extended resource. `contested` are the classes that name the same resource as a
    newer one. `extended_claims` are the pods for which kube-scheduler has stored a claim for extended resources.
    `answers` is for whoever works something out over these objects, to keep it as long as they hold.
    """

    classes: Mapping[str, DeviceClass] | None = None
    claims: Mapping[NamespacedName, ResourceClaim] | None = None
    templates: Mapping[NamespacedName, ResourceClaim] | None = None
    slices: Slices | None = None
    taken: Mapping[PoolName, frozenset[str]] = field(default_factory=dict)
    shared: Mapping[PoolName, Mapping[str, Consumed | None]] = field(default_factory=dict)
    by_resource: Mapping[str, DeviceClass] = field(default_factory=dict)
    contested: frozenset[str] = frozenset()
    extended_claims: frozenset[PodReference] = frozenset()
    answers: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        classes: Iterable[DeviceClass] | None = None,
        claims: Iterable[ResourceClaim] | None = None,
        templates: Iterable[ResourceClaim] | None = None,
        slices: Iterable[ResourceSlice] | None = None,
    ) -> "Devices":
        """The devices of these objects."""
        by_name = None if classes is None else {each.name: each for each in classes}
        known = None if claims is None else {(each.namespace, each.name): each for each in claims}
        allocations = [each.allocation for each in (known or {}).values() if each.allocation]
        by_resource = _by_resource((by_name or {}).values())
        chosen = {each.name for each in by_resource.values()}
        return cls(
            by_name,
            known,
            None if templates is None else {(each.namespace, each.name): each for each in templates},
            None if slices is None else Slices.of(slices),
            _taken(allocations),
            _shared(allocations),
            by_resource,
            frozenset(
                [name for name, each in (by_name or {}).items() if each.extended_resource and name not in chosen]
            ),
            frozenset([each.extended_for for each in (known or {}).values() if each.extended_for]),
        )

    def without_slices(self) -> "Devices":
        """The same objects, but that nothing is known of devices: as on nodes that are still to come."""
        return replace(self, slices=None, answers={})

    def back(self, resource: str) -> bool:
        """Return whether a DeviceClass backs, or may back, the resource, so that nodes need not offer it themselves.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA
        """
        if "/" not in resource:
            return False
        return self.class_of(resource) is not None or (self.classes is None and bool(device_class_of(resource)))

    def back_any(self, amounts: Iterable[tuple[str, int]]) -> bool:
        """Return whether a DeviceClass backs, or may back, one of these resources."""
        if not self.classes:
            # Most clusters have none: there it is not worth a look at each resource.
            return self.classes is None and any(resource.startswith(DEVICE_CLASS_PREFIX) for resource, _ in amounts)
        return any(self.back(resource) for resource, _ in amounts)

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the DeviceClass whose devices can be requested by the extended resource `resource`.

        Source: k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go
        """
        name = device_class_of(resource)
        return (self.classes or {}).get(name) if name else self.by_resource.get(resource)

    def is_class_known(self, resource: str) -> bool:
        """Return whether it is known if a DeviceClass backs the resource, and which.

        Whether a class keeps its implicit resource name when a newer class takes over its explicit one depends on the
        order in which kube-scheduler reads the classes.
        """
        name = device_class_of(resource)
        return not name or (self.classes is not None and name not in self.contested)


def _taken(allocations: Iterable[Allocation]) -> dict[PoolName, frozenset[str]]:
    taken: dict[PoolName, set[str]] = {}
    for allocation in allocations:
        for device in allocation.devices:
            taken.setdefault((device.driver, device.pool), set()).add(device.name)
    return {pool: frozenset(names) for pool, names in taken.items()}


def _shared(allocations: Iterable[Allocation]) -> dict[PoolName, dict[str, Consumed | None]]:
    shared: dict[PoolName, dict[str, Consumed | None]] = {}
    for allocation in allocations:
        for device, consumed in allocation.shares:
            of_pool = shared.setdefault((device.driver, device.pool), {})
            before = of_pool.setdefault(device.name, None)
            if consumed is not None:
                of_pool[device.name] = sum_of(dict(before or {}), dict(consumed))
    return shared


def _by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Return the class of each explicit extended resource: the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name, reverse=True):
        known = found.get(each.extended_resource)
        if each.extended_resource and (known is None or each.created >= known.created):
            found[each.extended_resource] = each
    return found


NO_DEVICES = Devices()
