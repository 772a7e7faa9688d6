"""The devices of ResourceSlices: attributes, capacity, taints, and the nodes with access to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.dra.capacity import Capacity, read_amount, read_capacities
from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.kube.cel.semver import is_semver, parse_semver
from webhook.kube.cel.values import Defaulting, Quantity
from webhook.kube.pod.taints import Taint
from webhook.kube.reader import Reader

Object = Mapping[str, Any]
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


class NodeAccess(NamedTuple):
    """The nodes with access to devices: one node by name, all nodes, or the nodes that a selector matches."""

    node_name: str
    all_nodes: bool
    terms: tuple[Term, ...] | None


@dataclass(frozen=True, slots=True)
class Device:
    """The facts of one device.

    `variables` are the CEL variables of selectors, None if kube-scheduler gets an error from every selector.
    `attributes` are by fully qualified name. `access` applies if the slice has `perDeviceNodeSelection`.
    `allows_multiple_allocations`: it can be allocated several times. `counters` are the amounts that it consumes of the
    counters of its pool, in thousandths. `has_conditions`: it has binding conditions, which must be met before a pod
    with the device is bound. `is_plain`: it is always allocated as a whole.
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


def read_node_access(reader: Reader, spec: Object, path: str) -> NodeAccess:
    """Return the node access in `spec` of a slice or in a device; `reader` collects the errors."""
    return NodeAccess(
        reader.text(spec.get("nodeName"), f"{path}.nodeName"),
        reader.boolean(spec.get("allNodes"), f"{path}.allNodes"),
        read_node_selector(reader, spec.get("nodeSelector"), f"{path}.nodeSelector"),
    )


def read_device(reader: Reader, device: Object, path: str, driver: str) -> Device:
    """Return the facts of the device at `path`, which `driver` publishes; `reader` collects the errors."""
    attributes = _attributes(reader, device.get("attributes"), f"{path}.attributes")
    capacity = read_capacities(reader, device.get("capacity"), f"{path}.capacity")
    variables = None
    if all(value is not None for value in attributes.values()):
        variables = {
            "driver": driver,
            "allowMultipleAllocations": device.get("allowMultipleAllocations") is True,
            "attributes": _by_domain({name: _seen(*each) for name, each in attributes.items() if each}, driver),
            "capacity": _by_domain({name: Quantity(each.value) for name, each in capacity.items()}, driver),
        }
    counters = _counters(reader, device.get("consumesCounters"), f"{path}.consumesCounters")
    allows_multiple_allocations = device.get("allowMultipleAllocations") is True
    known = {name: each for name, each in attributes.items() if each}
    bare = {f"{driver}/{name}": each for name, each in known.items() if "/" not in name}
    return Device(
        name=reader.text(device.get("name"), f"{path}.name"),
        variables=variables,
        attributes=bare | {name: each for name, each in known.items() if "/" in name},
        taints=_taints(reader, device.get("taints"), f"{path}.taints"),
        access=read_node_access(reader, device, path),
        allows_multiple_allocations=allows_multiple_allocations,
        capacity=capacity,
        counters=counters,
        has_conditions=bool(device.get("bindingConditions")),
        is_plain=not allows_multiple_allocations
        and not counters
        and not any(each.policy for each in capacity.values()),
    )


def _attributes(reader: Reader, value: Any, path: str) -> dict[str, AttributeValue | None]:
    """Return the attributes by name; None for an attribute of a type that kube-scheduler rejects."""
    found: dict[str, AttributeValue | None] = {}
    for name, each in reader.object(value, path).items():
        where = f"{path}[{name}]"
        attribute = reader.object(each, where)
        kind = next((kind for kind in _ATTRIBUTE_TYPES if attribute.get(kind) is not None), "")
        found[str(name)] = _attribute(reader, kind, attribute.get(kind), f"{where}.{kind}")
    return found


def _attribute(reader: Reader, kind: str, value: Any, path: str) -> AttributeValue | None:
    if kind == "int":
        return kind, reader.integer(value, path)
    if kind == "bool":
        return kind, reader.boolean(value, path)
    if kind == "string":
        return kind, reader.text(value, path)
    return (kind, reader.text(value, path)) if kind and is_semver(value) else None


def _seen(kind: str, value: Any) -> Any:
    """Return the value of an attribute in selectors."""
    return parse_semver(value) if kind == "version" else value


def _counters(reader: Reader, value: Any, path: str) -> tuple[tuple[CounterName, int], ...]:
    return tuple(
        [
            ((reader.text(each.get("counterSet"), f"{where}.counterSet"), name), amount)
            for where, each in reader.objects(value, path)
            for name, amount in read_counters(reader, each.get("counters"), f"{where}.counters").items()
        ]
    )


def read_counters(reader: Reader, value: Any, path: str) -> dict[str, int]:
    """Return counters by name, in thousandths; `reader` collects the errors."""
    return {
        str(name): read_amount(reader, reader.object(each, f"{path}[{name}]").get("value"), f"{path}[{name}].value")
        for name, each in reader.object(value, path).items()
    }


def _by_domain(values: Mapping[str, Any], driver: str) -> Defaulting:
    """Return values by domain and identifier; the default domain is the driver's.

    Source: k8s.io/dynamic-resource-allocation/cel/compile.go, parseQualifiedName
    """
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        found.setdefault(domain if slash else driver, {})[identifier if slash else name] = value
    return Defaulting(found)


def _taints(reader: Reader, value: Any, path: str) -> tuple[Taint, ...]:
    return tuple(
        [
            Taint(
                reader.text(taint.get("key"), f"{where}.key"),
                reader.text(taint.get("value"), f"{where}.value"),
                reader.text(taint.get("effect"), f"{where}.effect"),
            )
            for where, taint in reader.objects(value, path)
        ]
    )
