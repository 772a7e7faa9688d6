"""Builders of storage objects, as the API has them."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def make_pvc(
    name: str,
    storage_class: str | None = None,
    volume: str = "",
    *,
    storage: str = "1Gi",
    bound: bool = True,
    **spec: Any,
) -> Object:
    """Return a PersistentVolumeClaim; with `volume` it names one and is bound to it unless `bound` is false."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume and bound else {}
    fields: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}} | spec
    fields["storageClassName"] = storage_class or ""
    if volume:
        fields["volumeName"] = volume
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": fields}


def make_pv(
    name: str,
    storage_class: str = "",
    *,
    on: Mapping[str, list[str]] | None = None,
    labels: Mapping[str, str] | None = None,
    storage: str = "1Gi",
    **spec: Any,
) -> Object:
    """Return a PersistentVolume of a CSI driver, reached from nodes whose labels are `on`."""
    fields: Object = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": storage},
        "csi": {"driver": "disk.example.com", "volumeHandle": name},
        "storageClassName": storage_class,
    } | spec
    if on:
        expressions = [{"key": key, "operator": "In", "values": values} for key, values in on.items()]
        fields["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": fields}


def available(volume: Object) -> Object:
    """Return `volume` as a controller marks it when no claim is bound to it."""
    return volume | {"status": {"phase": "Available"}}


def make_storage_class(
    name: str,
    *,
    waits: bool = True,
    provisioner: str = "disk.example.com",
    topologies: list[Mapping[str, list[str]]] | None = None,
    is_default: bool = False,
    created: str = "",
) -> Object:
    """Return a StorageClass that waits for a pod to bind claims, or does not."""
    made: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }
    if is_default:
        made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    if created:
        made["metadata"]["creationTimestamp"] = created
    if topologies:
        made["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]}
            for term in topologies
        ]
    return made


def make_csi_node(name: str, **limits: int) -> Object:
    """Return the CSINode of a node, with the volume limit of each driver `DRIVER.example.com`."""
    drivers = [
        {"name": f"{driver}.example.com", "nodeID": name, "topologyKeys": None, "allocatable": {"count": count}}
        for driver, count in limits.items()
    ]
    metadata = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def make_csi_driver(name: str = "disk.example.com", *, tracks_capacity: bool = False) -> Object:
    """Return a CSIDriver, which reports the capacity that it has left, or does not."""
    spec = {"storageCapacity": tracks_capacity}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def make_capacity(
    name: str, storage_class: str, capacity: str = "", largest: str = "", *, on: Mapping[str, str] | None = None
) -> Object:
    """A CSIStorageCapacity: what is left for the class, and its largest volume, on nodes with the labels `on`."""
    amounts = {field: value for field, value in (("capacity", capacity), ("maximumVolumeSize", largest)) if value}
    topology = {} if on is None else {"nodeTopology": {"matchLabels": dict(on)}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": storage_class,
        **topology,
        **amounts,
    }


def make_attachment(node: str, volume: str, driver: str = "disk.example.com") -> Object:
    """Return a VolumeAttachment of a PersistentVolume."""
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    metadata = {"name": f"{node}-{volume}"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": metadata, "spec": spec}


def uses(*claims: str) -> list[Object]:
    """Return the `volumes` of a pod that uses these claims."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]
