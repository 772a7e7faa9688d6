"""ResourceClaims and ResourceClaimTemplates: requested and allocated devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.dra.device import DeviceId
from webhook.cluster.dra.device_class import Selectors, read_selectors
from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.taints import Toleration
from webhook.kube.pod.volumes import PodReference
from webhook.kube.reader import Reader

Object = Mapping[str, Any]

# Source: k8s.io/api/resource/v1/types.go, ExtendedResourceClaimAnnotation
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
_EXACT_COUNT, _ALL = "ExactCount", "All"


class DeviceRequest(NamedTuple):
    """One request of a claim, or one of its alternatives (`request/alternative`).

    It requests `amount` devices, or all that the selectors match (`takes_all`). `capacity` is the capacity that it
    requests of each device, in thousandths. `is_admin`: it requests admin access, also to allocated devices.
    `is_modelled`: it is of a known kind.
    """

    name: str
    device_class: str
    selectors: Selectors = ()
    amount: int = 1
    takes_all: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    is_admin: bool = False
    is_modelled: bool = True


class Alternatives(NamedTuple):
    """A request of a claim: the first of `requests` that can be allocated. `is_list`: it is a `firstAvailable` list."""

    requests: tuple[DeviceRequest, ...]
    is_list: bool


class AttributeConstraint(NamedTuple):
    """The devices of these requests, or of all, must have the same value of an attribute, or distinct values.

    A constraint without an attribute is of an unknown kind.
    """

    attribute: str
    requests: tuple[str, ...]
    is_distinct: bool

    def concerns(self, request: str) -> bool:
        """Return true if it applies to the devices of `request`."""
        return not self.requests or request in self.requests or request.partition("/")[0] in self.requests


class Share(NamedTuple):
    """A share of a device that is allocated several times; `consumed` is in thousandths, None if there is none."""

    device: DeviceId
    consumed: tuple[tuple[str, int], ...] | None


class Allocation(NamedTuple):
    """The devices of a claim, the request of each device, and the nodes that can use them; no terms: all nodes.

    `devices` are exclusively allocated. `has_failed`: a binding condition of a device has failed. `is_known`: it does
    not depend on the current time if kube-scheduler still waits for a binding condition.
    """

    devices: tuple[DeviceId, ...]
    shares: tuple[Share, ...]
    requests: tuple[str, ...]
    terms: tuple[Term, ...] | None
    has_failed: bool
    is_known: bool


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """The facts of a ResourceClaim or a ResourceClaimTemplate.

    `allocation` is None until devices are allocated. `controller_uid` is the uid of the controller of the claim.
    `extended_for` is the pod for whose extended resources kube-scheduler has created the claim.
    """

    namespace: str
    name: str
    requests: tuple[Alternatives, ...]
    constraints: tuple[AttributeConstraint, ...]
    is_template: bool
    is_being_deleted: bool
    allocation: Allocation | None
    controller_uid: str | None = None
    extended_for: PodReference | None = None

    @classmethod
    def of(cls, claim: Object) -> "ResourceClaim":
        """Return the facts of `claim`, a raw ResourceClaim or ResourceClaimTemplate.

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
        controller = _controller(reader, metadata)
        annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
        facts = cls(
            namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE,
            name=reader.text(metadata.get("name"), "metadata.name"),
            requests=_requests(reader, devices.get("requests"), f"{path}.devices.requests"),
            constraints=_constraints(reader, devices.get("constraints"), f"{path}.devices.constraints"),
            is_template=is_template,
            is_being_deleted=metadata.get("deletionTimestamp") is not None,
            allocation=_allocation(reader, status),
            controller_uid=controller.uid if controller else None,
            extended_for=controller if annotations.get(_EXTENDED_RESOURCE_CLAIM) == "true" else None,
        )
        reader.finish()
        return facts


def _controller(reader: Reader, metadata: Object) -> PodReference | None:
    for path, owner in reader.objects(metadata.get("ownerReferences"), "metadata.ownerReferences"):
        if owner.get("controller") is True:
            return PodReference(
                reader.text(owner.get("name"), f"{path}.name"), reader.text(owner.get("uid"), f"{path}.uid")
            )
    return None


def _requests(reader: Reader, value: Any, path: str) -> tuple[Alternatives, ...]:
    found = []
    for where, request in reader.objects(value, path):
        name = reader.text(request.get("name"), f"{where}.name")
        if request.get("exactly") is not None:
            exactly = reader.object(request.get("exactly"), f"{where}.exactly")
            found.append(Alternatives((_request(reader, exactly, f"{where}.exactly", name),), is_list=False))
            continue
        alternatives = [
            _request(reader, each, inner, f"{name}/{reader.text(each.get('name'), f'{inner}.name')}")
            for inner, each in reader.objects(request.get("firstAvailable"), f"{where}.firstAvailable")
        ]
        found.append(Alternatives(tuple(alternatives), is_list=True))
    return tuple(found)


def _request(reader: Reader, request: Object, path: str, name: str) -> DeviceRequest:
    mode = reader.text(request.get("allocationMode"), f"{path}.allocationMode") or _EXACT_COUNT
    amount = 1 if request.get("count") is None else reader.integer(request["count"], f"{path}.count")
    capacity = reader.object(request.get("capacity"), f"{path}.capacity")
    return DeviceRequest(
        name=name,
        device_class=reader.text(request.get("deviceClassName"), f"{path}.deviceClassName"),
        selectors=read_selectors(reader, request.get("selectors"), f"{path}.selectors"),
        amount=amount,
        takes_all=mode == _ALL,
        tolerations=_tolerations(reader, request.get("tolerations"), f"{path}.tolerations"),
        capacity=tuple(read_milli(reader, capacity.get("requests"), f"{path}.capacity.requests").items()),
        is_admin=reader.boolean(request.get("adminAccess"), f"{path}.adminAccess"),
        is_modelled=mode == _ALL or (mode == _EXACT_COUNT and amount > 0),
    )


def _tolerations(reader: Reader, value: Any, path: str) -> tuple[Toleration, ...]:
    return tuple(
        [
            Toleration(
                reader.text(each.get("key"), f"{where}.key"),
                reader.text(each.get("operator"), f"{where}.operator") or "Equal",
                reader.text(each.get("value"), f"{where}.value"),
                reader.text(each.get("effect"), f"{where}.effect"),
            )
            for where, each in reader.objects(value, path)
        ]
    )


def _constraints(reader: Reader, value: Any, path: str) -> tuple[AttributeConstraint, ...]:
    return tuple(
        [
            AttributeConstraint(
                reader.text(each.get("matchAttribute"), f"{where}.matchAttribute")
                or reader.text(each.get("distinctAttribute"), f"{where}.distinctAttribute"),
                reader.texts(each.get("requests"), f"{where}.requests"),
                is_distinct=each.get("matchAttribute") is None,
            )
            for where, each in reader.objects(value, path)
        ]
    )


def _allocation(reader: Reader, status: Object) -> Allocation | None:
    if status.get("allocation") is None:
        return None
    path = "status.allocation"
    allocation = reader.object(status.get("allocation"), path)
    devices = reader.object(allocation.get("devices"), f"{path}.devices")
    results = reader.objects(devices.get("results"), f"{path}.devices.results")
    owned = [(where, each) for where, each in results if not each.get("adminAccess")]
    has_failed, is_pending = _readiness(reader, status, [each for _, each in results])
    return Allocation(
        # Admin access does not allocate the device.
        tuple([_device_id(reader, each, where) for where, each in owned if each.get("shareID") is None]),
        tuple([_share(reader, each, where) for where, each in owned if each.get("shareID") is not None]),
        tuple([reader.text(each.get("request"), f"{where}.request") for where, each in results]),
        read_node_selector(reader, allocation.get("nodeSelector"), f"{path}.nodeSelector"),
        has_failed,
        is_known=not is_pending or allocation.get("allocationTimestamp") is None,
    )


def _readiness(reader: Reader, status: Object, results: Sequence[Object]) -> tuple[bool, bool]:
    """Return two booleans: a binding condition of a device has failed, and one is still to be met.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    isClaimReadyForBinding
    """
    devices = {
        _device_id(reader, each, where): {
            condition.get("type")
            for _, condition in reader.objects(each.get("conditions"), f"{where}.conditions")
            if condition.get("status") == "True"
        }
        for where, each in reversed(reader.objects(status.get("devices"), "status.devices"))
    }
    for result in results:
        wanted = reader.texts(result.get("bindingConditions"), "status.allocation.devices.results.bindingConditions")
        holding = devices.get(_device_id(reader, result, "status.allocation.devices.results"))
        if not wanted:
            continue
        if holding is None:
            return False, True
        failing = result.get("bindingFailureConditions")
        if holding.intersection(reader.texts(failing, "status.allocation.devices.results.bindingFailureConditions")):
            return True, False
        if not holding.issuperset(wanted):
            return False, True
    return False, False


def _share(reader: Reader, result: Object, path: str) -> Share:
    consumed = result.get("consumedCapacity")
    amounts = None if consumed is None else read_milli(reader, consumed, f"{path}.consumedCapacity").items()
    return Share(_device_id(reader, result, path), None if amounts is None else tuple(sorted(amounts)))


def _device_id(reader: Reader, result: Object, path: str) -> DeviceId:
    return DeviceId(
        reader.text(result.get("driver"), f"{path}.driver"),
        reader.text(result.get("pool"), f"{path}.pool"),
        reader.text(result.get("device"), f"{path}.device"),
    )
