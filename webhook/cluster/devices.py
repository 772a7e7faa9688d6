"""Device classes and claims for devices: whether what a pod claims can exist at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from webhook.kube.reader import Reader
from webhook.kube.resource_names import device_class_of
from webhook.kube.wellknown import DEFAULT_NAMESPACE

Object = Mapping[str, Any]
NamespacedName = tuple[str, str]


class DeviceClass(NamedTuple):
    """The facts of a DeviceClass. `extended_resource`: the resource by which pods can ask for its devices, or empty."""

    name: str
    extended_resource: str

    @classmethod
    def of(cls, device_class: Object) -> "DeviceClass":
        """The facts of `device_class`, a raw object of the API.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(device_class.get("metadata"), "metadata")
        spec = reader.object(device_class.get("spec"), "spec")
        facts = cls(
            reader.text(metadata.get("name"), "metadata.name"),
            reader.text(spec.get("extendedResourceName"), "spec.extendedResourceName"),
        )
        reader.finish()
        return facts


class DeviceRequest(NamedTuple):
    """One request of a claim, or one of its alternatives (`request/alternative`), and the class that it asks for."""

    name: str
    device_class: str


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """The facts of a ResourceClaim or a ResourceClaimTemplate. `is_allocated`: devices are chosen already."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...]
    is_template: bool
    is_allocated: bool

    @classmethod
    def of(cls, claim: Object) -> "DeviceClaim":
        """The facts of `claim`, a raw object of the API, of either kind.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(claim.get("metadata"), "metadata")
        spec, path = reader.object(claim.get("spec"), "spec"), "spec"
        is_template = claim.get("kind") == "ResourceClaimTemplate"
        if is_template:
            spec, path = reader.object(spec.get("spec"), "spec.spec"), "spec.spec"
        devices = reader.object(spec.get("devices"), f"{path}.devices")
        status = reader.object(claim.get("status"), "status")
        facts = cls(
            namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE,
            name=reader.text(metadata.get("name"), "metadata.name"),
            requests=_requests(reader, devices.get("requests"), f"{path}.devices.requests"),
            is_template=is_template,
            is_allocated=status.get("allocation") is not None,
        )
        reader.finish()
        return facts


def _requests(reader: Reader, value: Any, path: str) -> tuple[DeviceRequest, ...]:
    found = []
    for where, request in reader.objects(value, path):
        name = reader.text(request.get("name"), f"{where}.name")
        if request.get("exactly") is not None:
            exactly = reader.object(request.get("exactly"), f"{where}.exactly")
            found.append(DeviceRequest(name, _class_of(reader, exactly, f"{where}.exactly")))
        for each, alternative in reader.objects(request.get("firstAvailable"), f"{where}.firstAvailable"):
            inner = reader.text(alternative.get("name"), f"{each}.name")
            found.append(DeviceRequest(f"{name}/{inner}", _class_of(reader, alternative, each)))
    return tuple(found)


def _class_of(reader: Reader, request: Object, path: str) -> str:
    return reader.text(request.get("deviceClassName"), f"{path}.deviceClassName")


@dataclass(frozen=True, slots=True)
class Devices:
    """The device objects of a cluster by name; `classes` is None where none was given, and nothing is known.

    `extended_resources` are the names by which pods can ask for devices of a class without a claim.
    """

    classes: Mapping[str, DeviceClass] | None = None
    claims: Mapping[NamespacedName, DeviceClaim] = field(default_factory=dict)
    templates: Mapping[NamespacedName, DeviceClaim] = field(default_factory=dict)
    extended_resources: frozenset[str] = frozenset()

    @classmethod
    def of(cls, classes: Iterable[DeviceClass] | None = None, claims: Iterable[DeviceClaim] = ()) -> "Devices":
        """The devices of these objects."""
        by_name = None if classes is None else {each.name: each for each in classes}
        claims = tuple(claims)
        return cls(
            by_name,
            {(each.namespace, each.name): each for each in claims if not each.is_template},
            {(each.namespace, each.name): each for each in claims if each.is_template},
            frozenset(each.extended_resource for each in (by_name or {}).values() if each.extended_resource),
        )

    def back(self, resource: str) -> bool:
        """Whether a device class stands behind the resource, so that nodes need not offer it themselves.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA
        """
        name = device_class_of(resource)
        if name:
            return self.classes is None or name in self.classes
        return resource in self.extended_resources


NO_DEVICES = Devices()
