"""The device objects of a cluster: classes, claims, and the slices that say which devices there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.device_claim import DeviceClaim
from webhook.cluster.device_class import DeviceClass
from webhook.cluster.resource_slice import PoolName, ResourceSlice, Slices
from webhook.kube.resource_names import device_class_of

NamespacedName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Devices:
    """The device objects of a cluster by name; None where objects of that kind were not given, and nothing is known.

    `taken` are the names of the devices that claims have got, by their pools. `extended_resources` are the names by
    which pods can ask for devices of a class without a claim. `answers` is for whoever works something out over these
    objects, to keep it as long as they hold.
    """

    classes: Mapping[str, DeviceClass] | None = None
    claims: Mapping[NamespacedName, DeviceClaim] | None = None
    templates: Mapping[NamespacedName, DeviceClaim] | None = None
    slices: Slices | None = None
    taken: Mapping[PoolName, frozenset[str]] = field(default_factory=dict)
    extended_resources: frozenset[str] = frozenset()
    answers: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        classes: Iterable[DeviceClass] | None = None,
        claims: Iterable[DeviceClaim] | None = None,
        templates: Iterable[DeviceClaim] | None = None,
        slices: Iterable[ResourceSlice] | None = None,
    ) -> "Devices":
        """The devices of these objects."""
        by_name = None if classes is None else {each.name: each for each in classes}
        known = None if claims is None else {(each.namespace, each.name): each for each in claims}
        taken: dict[PoolName, set[str]] = {}
        for claim in (known or {}).values():
            for device in claim.allocation.devices if claim.allocation else ():
                taken.setdefault((device.driver, device.pool), set()).add(device.name)
        return cls(
            by_name,
            known,
            None if templates is None else {(each.namespace, each.name): each for each in templates},
            None if slices is None else Slices.of(slices),
            {pool: frozenset(names) for pool, names in taken.items()},
            frozenset(each.extended_resource for each in (by_name or {}).values() if each.extended_resource),
        )

    def without_slices(self) -> "Devices":
        """The same objects, but that nothing is known of devices: as on nodes that are still to come."""
        return replace(self, slices=None, answers={})

    def back(self, resource: str) -> bool:
        """Whether a device class stands behind the resource, so that nodes need not offer it themselves.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA
        """
        name = device_class_of(resource)
        if name:
            return self.classes is None or name in self.classes
        return resource in self.extended_resources


NO_DEVICES = Devices()
