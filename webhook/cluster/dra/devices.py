"""The device objects of a cluster: DeviceClasses, ResourceClaims, ResourceSlices and DeviceTaintRules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cluster.dra.device import DeviceTaintRule
from webhook.cluster.dra.device_class import DeviceClass
from webhook.cluster.dra.resource_claim import Allocation, ResourceClaim
from webhook.cluster.dra.resource_slice import PoolName, ResourceSlice, Slices
from webhook.kube.pod.amounts import DEVICE_CLASS_PREFIX, device_class_of, sum_of
from webhook.kube.pod.volumes import PodReference

NamespacedName = tuple[str, str]
Consumed = Mapping[str, int]
"""The consumed amounts of the capacities of a device, in thousandths."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The device objects of a cluster by name, or None if the kind is not known.

    `allocated` are the names of the exclusively allocated devices, by pool. `shared` are the devices with shared
    allocations and their consumed capacities, or None if there are none. `by_resource` are the classes by the extended
    resource that requests their devices. `contested` are the classes that name the same resource as a newer class.
    `extended_claims` are the pods for which kube-scheduler has stored a claim for extended resources. Unknown
    `taint_rules` count as none, because releases before 1.37 serve none. `planned_templates` are the
    ResourceClaimTemplates in files with pods, for a cluster whose own templates are not known. `answers` is a cache for
    results that are computed from these objects.
    """

    classes: Mapping[str, DeviceClass] | None = None
    claims: Mapping[NamespacedName, ResourceClaim] | None = None
    templates: Mapping[NamespacedName, ResourceClaim] | None = None
    slices: Slices | None = None
    allocated: Mapping[PoolName, frozenset[str]] = field(default_factory=dict)
    shared: Mapping[PoolName, Mapping[str, Consumed | None]] = field(default_factory=dict)
    by_resource: Mapping[str, DeviceClass] = field(default_factory=dict)
    contested: frozenset[str] = frozenset()
    extended_claims: frozenset[PodReference] = frozenset()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    planned_templates: Mapping[NamespacedName, ResourceClaim] = field(default_factory=dict)
    answers: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        classes: Mapping[str, DeviceClass] | None,
        claims: Mapping[NamespacedName, ResourceClaim] | None,
        templates: Mapping[NamespacedName, ResourceClaim] | None,
        slices: Iterable[ResourceSlice] | None,
        taint_rules: Iterable[DeviceTaintRule] | None,
    ) -> "Devices":
        """Return the tables of these objects."""
        known = (claims or {}).values()
        allocations = [each.allocation for each in known if each.allocation]
        by_resource = _by_resource((classes or {}).values())
        chosen = {each.name for each in by_resource.values()}
        return cls(
            classes,
            claims,
            templates,
            None if slices is None else Slices.of(slices),
            _allocated(allocations),
            _shared(allocations),
            by_resource,
            frozenset(
                [name for name, each in (classes or {}).items() if each.extended_resource and name not in chosen]
            ),
            frozenset([each.extended_for for each in known if each.extended_for]),
            tuple(taint_rules or ()),
        )

    def back(self, resource: str) -> bool:
        """Return true if a DeviceClass backs or may back the resource, so that nodes need not list it as allocatable.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA
        """
        if "/" not in resource:
            return False
        return self.class_of(resource) is not None or (self.classes is None and bool(device_class_of(resource)))

    def back_any(self, amounts: Iterable[tuple[str, int]]) -> bool:
        """Return true if a DeviceClass backs, or may back, one of these resources."""
        if not self.classes:
            # Fast path: most clusters have no DeviceClasses.
            return self.classes is None and any(resource.startswith(DEVICE_CLASS_PREFIX) for resource, _ in amounts)
        return any(self.back(resource) for resource, _ in amounts)

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the DeviceClass whose devices pods can request as the extended resource `resource`, or None.

        Source: k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go
        """
        name = device_class_of(resource)
        return (self.classes or {}).get(name) if name else self.by_resource.get(resource)

    def is_class_known(self, resource: str) -> bool:
        """Return true if it is known which DeviceClass backs the resource, or that no class does.

        It is not known if a newer class uses the same explicit resource name: the order in which kube-scheduler reads
        the two classes decides whether the older class keeps its implicit name.
        """
        name = device_class_of(resource)
        return not name or (self.classes is not None and name not in self.contested)


def _allocated(allocations: Iterable[Allocation]) -> dict[PoolName, frozenset[str]]:
    names: dict[PoolName, set[str]] = {}
    for allocation in allocations:
        for device in allocation.devices:
            names.setdefault((device.driver, device.pool), set()).add(device.name)
    return {pool: frozenset(found) for pool, found in names.items()}


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
    """Return the class of each explicit extended resource: of several, the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name, reverse=True):
        known = found.get(each.extended_resource)
        if each.extended_resource and (known is None or each.created >= known.created):
            found[each.extended_resource] = each
    return found


NO_DEVICES = Devices()
