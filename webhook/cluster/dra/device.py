"""The devices of ResourceSlices and the taint rules for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.dra.capacity import Capacity, read_amount, read_capacities
from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.kube.cel.values import Defaulting, Quantity, is_semver, parse_semver
from webhook.kube.pod.taints import Taint
from webhook.kube.reader import Reader, reading

CounterName = tuple[str, str]
"""The names of a counter set of a pool, and of a counter in it."""
AttributeValue = tuple[str, Any]
"""The type of an attribute and its value; values of different types are never equal."""

_ATTRIBUTE_TYPES = ("string", "int", "bool", "version")


class DeviceId(NamedTuple):
    """The identity of a device in a cluster."""

    driver: str
    pool: str
    name: str

    @classmethod
    def read(cls, reader: Reader) -> "DeviceId":
        """Return the identity in a device selector, an allocation or a status."""
        return cls(reader.text("driver"), reader.text("pool"), reader.text("device"))


class NodeAccess(NamedTuple):
    """The nodes that can access devices: one node by name, all nodes, or the nodes that a selector matches."""

    node_name: str
    all_nodes: bool
    terms: tuple[Term, ...] | None


class DeviceTaintRule(NamedTuple):
    """The facts of a DeviceTaintRule: its taint, and the devices that it selects.

    An empty string in `selected` matches every driver, pool or device. If `selected` is None, no device is selected.

    Source: k8s.io/api/resource/v1/types.go, DeviceTaintRuleSpec, and
    k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go, applyPatches
    """

    taint: Taint
    selected: DeviceId | None

    @classmethod
    @reading
    def of(cls, rule: Reader) -> "DeviceTaintRule":
        """Read a DeviceTaintRule."""
        spec = rule.object("spec")
        selects_any = spec.raw.get("deviceSelector") is not None
        selected = DeviceId.read(spec.object("deviceSelector")) if selects_any else None
        return cls(Taint.read(spec.object("taint")), selected)

    def selects(self, device: DeviceId) -> bool:
        """Return whether the rule taints `device`."""
        return self.selected is not None and all(
            not wanted or wanted == name for wanted, name in zip(self.selected, device, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Device:
    """The facts of one device.

    `variables` are the CEL variables for selectors, or None if every selector fails with an error in kube-scheduler.
    `attributes` are keyed by fully qualified name. `access` applies if the slice has `perDeviceNodeSelection`.
    `allows_multiple_allocations` is true if the device can be allocated several times. `counters` are the amounts that
    it consumes of the counters of its pool, in thousandths. `has_conditions` is true if it has binding conditions,
    which must be met before a pod with the device is bound. `is_plain` is true if the device is always allocated as a
    whole.
    """

    name: str
    variables: Mapping[str, Any] | None
    attributes: Mapping[str, AttributeValue]
    taints: tuple[Taint, ...]
    access: NodeAccess
    allows_multiple_allocations: bool
    capacity: Mapping[str, Capacity]
    counters: tuple[tuple[CounterName, int], ...]
    has_conditions: bool
    is_plain: bool


def read_node_access(reader: Reader) -> NodeAccess:
    """Return the node access of a device or of the spec of a slice."""
    return NodeAccess(reader.text("nodeName"), reader.boolean("allNodes"), read_node_selector(reader, "nodeSelector"))


def read_device(device: Reader, driver: str, *, is_nested: bool = False) -> Device:
    """Return the facts of `device` of `driver`; if `is_nested`, all fields but the name are in `basic`."""
    name, device = device.text("name"), device.object("basic") if is_nested else device
    attributes = {name: _attribute(each) for name, each in device.objects_by_name("attributes")}
    capacity = read_capacities(device)
    allows_multiple_allocations = device.raw.get("allowMultipleAllocations") is True
    known = {name: each for name, each in attributes.items() if each}
    variables = None
    if len(known) == len(attributes):
        seen = {name: parse_semver(each) if kind == "version" else each for name, (kind, each) in known.items()}
        variables = {
            "driver": driver,
            "allowMultipleAllocations": allows_multiple_allocations,
            "attributes": _by_domain(seen, driver),
            "capacity": _by_domain({name: Quantity(each.value) for name, each in capacity.items()}, driver),
        }
    counters = tuple(
        [
            ((each.text("counterSet"), name), amount)
            for each in device.objects("consumesCounters")
            for name, amount in read_counters(each).items()
        ]
    )
    bare = {f"{driver}/{name}": each for name, each in known.items() if "/" not in name}
    return Device(
        name=name,
        variables=variables,
        attributes=bare | {name: each for name, each in known.items() if "/" in name},
        taints=tuple([Taint.read(each) for each in device.objects("taints")]),
        access=read_node_access(device),
        allows_multiple_allocations=allows_multiple_allocations,
        capacity=capacity,
        counters=counters,
        has_conditions=bool(device.raw.get("bindingConditions")),
        is_plain=not allows_multiple_allocations
        and not counters
        and not any(each.policy for each in capacity.values()),
    )


def _attribute(attribute: Reader) -> AttributeValue | None:
    """Return an attribute, or None for one of a type that kube-scheduler rejects."""
    kind = next((kind for kind in _ATTRIBUTE_TYPES if attribute.raw.get(kind) is not None), "")
    if kind == "int":
        return kind, attribute.integer(kind)
    if kind == "bool":
        return kind, attribute.boolean(kind)
    is_known = kind == "string" or (kind == "version" and is_semver(attribute.raw[kind]))
    return (kind, attribute.text(kind)) if is_known else None


def read_counters(counter_set: Reader) -> dict[str, int]:
    """Return the counters of a set, or the amounts that a device consumes of them, by name, in thousandths."""
    return {name: read_amount(each, "value") for name, each in counter_set.objects_by_name("counters")}


def _by_domain(values: Mapping[str, Any], driver: str) -> Defaulting:
    """Return values by domain and identifier; the default domain is the driver's.

    Source: k8s.io/dynamic-resource-allocation/cel/compile.go, parseQualifiedName
    """
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        found.setdefault(domain if slash else driver, {})[identifier if slash else name] = value
    return Defaulting(found)
