"""Builders of ResourceSlices, and of claims for what is in them, as the API has them."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

DRIVER = "gpu.example.com"
_REACHES = {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}
OF_DRIVER = f'device.driver == "{DRIVER}"'


def make_shared_device(name: str, capacity: Mapping[str, str], policy: Object | None = None, **fields: Any) -> Object:
    """Return a device that can be allocated several times; the `policy` is that of each of its capacities."""
    capacities = {
        key: {"value": value} | ({"requestPolicy": policy} if policy else {}) for key, value in capacity.items()
    }
    return make_device(name, **fields) | {"allowMultipleAllocations": True, "capacity": capacities}


def make_part(name: str, counters: Mapping[str, str], **fields: Any) -> Object:
    """Return a device that consumes counters of the set `card` of its pool."""
    amounts = {key: {"value": value} for key, value in counters.items()}
    return make_device(name, consumesCounters=[{"counterSet": "card", "counters": amounts}], **fields)


def make_counters(node: str, counters: Mapping[str, str], **spec: Any) -> Object:
    """A ResourceSlice with the set of counters `card` of the pool of a node; the devices are in another slice."""
    amounts = {key: {"value": value} for key, value in counters.items()}
    made = make_slice(node, name=f"{node}-counters", sharedCounters=[{"name": "card", "counters": amounts}], **spec)
    del made["spec"]["devices"]
    return made


def make_device(name: str, capacity: Mapping[str, str] | None = None, **fields: Any) -> Object:
    """Return a device; a field that is a list or an object is copied, any other is an attribute."""
    kept = {key: value for key, value in fields.items() if isinstance(value, (list, dict)) or key == "nodeName"}
    attributes = {key: _attribute(value) for key, value in fields.items() if key not in kept}
    device: Object = {"name": name, **kept}
    if attributes:
        device["attributes"] = attributes
    if capacity:
        device["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    return device


def _attribute(value: object) -> Object:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    text = str(value)
    return {"version": text[1:]} if text[:1] == "v" and text[1:2].isdigit() else {"string": text}


def make_cards(count: int, first: int = 0, **attributes: Any) -> list[Object]:
    """Return devices that differ only in their names."""
    return [make_device(f"card-{number}", **attributes) for number in range(first, first + count)]


def make_slice(
    node: str = "",
    *devices: Object,
    name: str = "",
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> Object:
    """Return a ResourceSlice of a node, or of those that `spec` says; the pool is called by the node."""
    fields: Object = {
        "driver": driver,
        "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": count},
        "devices": list(devices),
    }
    if node and not _REACHES & spec.keys():
        fields["nodeName"] = node
    metadata = {"name": name or f"{pool or node}-{driver.partition('.')[0]}-{generation}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": fields | spec}


def selected(*expressions: str) -> list[Object]:
    """Return the `selectors` of a class or a request."""
    return [{"cel": {"expression": each}} for each in expressions]


def make_device_class(
    name: str = "gpu", *expressions: str, extended_resource: str = "", any_driver: bool = False
) -> Object:
    """Return a DeviceClass that takes the devices for which these expressions hold.

    Without any, it takes those of the driver; with `any_driver`, it has no selectors.
    """
    chosen = expressions or (() if any_driver else (OF_DRIVER,))
    spec: Object = {"selectors": selected(*chosen)} if chosen else {}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def exactly(name: str = "cards", count: int = 1, *expressions: str, device_class: str = "gpu", **fields: Any) -> Object:
    """Return a request for a number of devices; None: for all."""
    request: Object = {"deviceClassName": device_class, **fields}
    request |= {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    if expressions:
        request["selectors"] = selected(*expressions)
    return {"name": name, "exactly": request}


def first_of(name: str, **alternatives: Object) -> Object:
    """Return a request for the first of `alternatives`, each made by `exactly`."""
    return {
        "name": name,
        "firstAvailable": [{"name": each, **request["exactly"]} for each, request in alternatives.items()],
    }


def constrained(claim: Object, attribute: str, *requests: str, distinct: bool = False) -> Object:
    """Return `claim` with a constraint that its devices agree in an attribute, or that they are `distinct` in it."""
    kind = "distinctAttribute" if distinct else "matchAttribute"
    constraint: Object = {kind: attribute} | ({"requests": list(requests)} if requests else {})
    devices = claim["spec"]["devices"]
    return claim | {"spec": {"devices": devices | {"constraints": [*devices.get("constraints", []), constraint]}}}


def allocated(claim: Object, pool: str, *devices: str, **fields: Any) -> Object:
    """Return `claim` with devices of the pool of a node, to be used there; `fields` are those of each result."""
    names = [request["name"] for request in claim["spec"]["devices"]["requests"]]
    results = [
        {"request": fields.get("request", names[0]), "driver": DRIVER, "pool": pool, "device": device}
        | {key: value for key, value in fields.items() if key != "request"}
        for device in devices
    ]
    on_node = {"key": "metadata.name", "operator": "In", "values": [pool]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [on_node]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }
    return claim | {"status": {"allocation": allocation}}


def claiming(*claims: str, template: bool = False) -> list[Object]:
    """Return the `resourceClaims` of a pod."""
    field = "resourceClaimTemplateName" if template else "resourceClaimName"
    return [{"name": f"c{number}", field: claim} for number, claim in enumerate(claims)]


def make_resource_claim(name: str, *requests: Mapping[str, Any], template: bool = False) -> Object:
    """Return a ResourceClaim of `requests`, or the template of one."""
    spec: Object = {"devices": {"requests": list(requests)}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate" if template else "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": spec} if template else spec,
    }
