"""ResourceClaims and ResourceClaimTemplates: requested and allocated devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhook.cluster.dra.device import DeviceId
from webhook.cluster.dra.device_class import DEVICES_V1BETA1, Selectors, read_selectors
from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.taints import Toleration
from webhook.kube.pod.volumes import PodReference
from webhook.kube.reader import Reader, reading

# Source: k8s.io/api/resource/v1/types.go, ExtendedResourceClaimAnnotation
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
_EXACT_COUNT, _ALL = "ExactCount", "All"


class DeviceRequest(NamedTuple):
    """One request of a claim, or one of its alternatives (`request/alternative`).

    It requests `amount` devices, or all devices that the selectors match (`takes_all`). `capacity` is the requested
    capacity of each device, in thousandths. `is_admin` is true if it requests admin access, which includes allocated
    devices. `is_modelled` is true if the webhook models this kind of request.
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
    """A constraint: the devices of some or all requests must have the same value of an attribute, or distinct values.

    A constraint without an attribute is of an unknown kind.
    """

    attribute: str
    requests: tuple[str, ...]
    is_distinct: bool

    def concerns(self, request: str) -> bool:
        """Return true if the constraint applies to the devices of `request`."""
        return not self.requests or request in self.requests or request.partition("/")[0] in self.requests


class Share(NamedTuple):
    """A share of a device that is allocated several times; `consumed` is in thousandths, or None if there is none."""

    device: DeviceId
    consumed: tuple[tuple[str, int], ...] | None


class Allocation(NamedTuple):
    """The devices of a claim, the request of each device, and the nodes that can use them.

    Without `terms`, all nodes can.

    `devices` are exclusively allocated. `has_failed` is true if a binding condition of a device has failed. `is_known`
    is false if the current time decides whether kube-scheduler still waits for a binding condition.
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
    is_being_deleted: bool
    allocation: Allocation | None
    controller_uid: str | None = None
    extended_for: PodReference | None = None

    @classmethod
    @reading
    def of(cls, claim: Reader) -> "ResourceClaim":
        """Read a ResourceClaim or a ResourceClaimTemplate."""
        metadata, spec, status = claim.object("metadata"), claim.object("spec"), claim.object("status")
        is_flat = claim.raw.get("apiVersion") == DEVICES_V1BETA1
        is_template = claim.raw.get("kind") == "ResourceClaimTemplate"
        devices = (spec.object("spec") if is_template else spec).object("devices")
        controller = PodReference.controller(metadata)
        annotations = metadata.text_map("annotations")
        return cls(
            namespace=metadata.text("namespace") or DEFAULT_NAMESPACE,
            name=metadata.text("name"),
            requests=tuple([_alternatives(each, is_flat=is_flat) for each in devices.objects("requests")]),
            constraints=tuple([_constraint(each) for each in devices.objects("constraints")]),
            is_being_deleted=metadata.raw.get("deletionTimestamp") is not None,
            allocation=_allocation(status),
            controller_uid=controller.uid if controller else None,
            extended_for=controller if annotations.get(_EXTENDED_RESOURCE_CLAIM) == "true" else None,
        )


def _alternatives(request: Reader, *, is_flat: bool) -> Alternatives:
    name = request.text("name")
    if is_flat and request.raw.get("firstAvailable") is None:
        return Alternatives((_request(request, name),), is_list=False)
    if request.raw.get("exactly") is not None:
        return Alternatives((_request(request.object("exactly"), name),), is_list=False)
    alternatives = [_request(each, f"{name}/{each.text('name')}") for each in request.objects("firstAvailable")]
    return Alternatives(tuple(alternatives), is_list=True)


def _request(request: Reader, name: str) -> DeviceRequest:
    mode = request.text("allocationMode") or _EXACT_COUNT
    amount = 1 if request.raw.get("count") is None else request.integer("count")
    capacity = request.object("capacity")
    return DeviceRequest(
        name=name,
        device_class=request.text("deviceClassName"),
        selectors=read_selectors(request),
        amount=amount,
        takes_all=mode == _ALL,
        tolerations=tuple([_toleration(each) for each in request.objects("tolerations")]),
        capacity=tuple(read_milli(capacity, "requests").items()),
        is_admin=request.boolean("adminAccess"),
        is_modelled=mode == _ALL or (mode == _EXACT_COUNT and amount > 0),
    )


def _toleration(reader: Reader) -> Toleration:
    key, operator = reader.text("key"), reader.text("operator") or "Equal"
    return Toleration(key, operator, reader.text("value"), reader.text("effect"))


def _constraint(constraint: Reader) -> AttributeConstraint:
    return AttributeConstraint(
        constraint.text("matchAttribute") or constraint.text("distinctAttribute"),
        constraint.texts("requests"),
        is_distinct=constraint.raw.get("matchAttribute") is None,
    )


def _allocation(status: Reader) -> Allocation | None:
    if status.raw.get("allocation") is None:
        return None
    allocation = status.object("allocation")
    results = allocation.object("devices").objects("results")
    # Admin access does not allocate the device.
    owned = [each for each in results if not each.raw.get("adminAccess")]
    has_failed, is_pending = _readiness(status, results)
    return Allocation(
        tuple([DeviceId.read(each) for each in owned if each.raw.get("shareID") is None]),
        tuple([_share(each) for each in owned if each.raw.get("shareID") is not None]),
        tuple([each.text("request") for each in results]),
        read_node_selector(allocation, "nodeSelector"),
        has_failed,
        is_known=not is_pending or allocation.raw.get("allocationTimestamp") is None,
    )


def _readiness(status: Reader, results: Sequence[Reader]) -> tuple[bool, bool]:
    """Return two booleans: whether a binding condition of a device has failed, and whether one is not yet met.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    isClaimReadyForBinding
    """
    devices = {
        DeviceId.read(each): {
            condition.raw.get("type")
            for condition in each.objects("conditions")
            if condition.raw.get("status") == "True"
        }
        for each in reversed(status.objects("devices"))
    }
    for result in results:
        wanted = result.texts("bindingConditions")
        holding = devices.get(DeviceId.read(result))
        if not wanted:
            continue
        if holding is None:
            return False, True
        if holding.intersection(result.texts("bindingFailureConditions")):
            return True, False
        if not holding.issuperset(wanted):
            return False, True
    return False, False


def _share(result: Reader) -> Share:
    has_amounts = result.raw.get("consumedCapacity") is not None
    consumed = tuple(sorted(read_milli(result, "consumedCapacity").items())) if has_amounts else None
    return Share(DeviceId.read(result), consumed)
