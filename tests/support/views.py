"""Snapshots as plain comparable values: a rebuilt and an updated snapshot must be equal."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from webhook.cluster.batch.kueue import KueueObjects
from webhook.cluster.batch.queues import KaiObjects
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.selectors import exact_selector

Object = dict[str, Any]

_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
_APPS = ("web", "db")
_LABELS = ("kubernetes.io/hostname", "zone", "pool")


def said(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that plugins can ask `snapshot`, by its fields. A kind that is known to be empty is as one unknown."""
    return {name: say(snapshot) for name, say in SAID.items()}


def _nodes(snapshot: Snapshot) -> Any:
    return [
        (
            info.node,
            sorted(info.pods, key=lambda pod: (pod.namespace, pod.name)),
            info.requested,
            info.non_zero_milli_cpu,
            info.non_zero_memory_bytes,
        )
        for info in snapshot.nodes
    ]


def _load(snapshot: Snapshot) -> Any:
    return {
        "requested": {each: snapshot.requested(each).tolist() for each in _RESOURCES},
        "counted": {each: snapshot.non_zero_requested(each).tolist() for each in _RESOURCES},
        "pods": snapshot.load.pods.tolist(),
        "host ports": {key: set(taken) for key, taken in snapshot.load.host_ports.items()},
    }


def _pods(snapshot: Snapshot) -> Any:
    pods = snapshot.pods
    return {
        "by app": {app: sorted(pods.rows_selected(None, exact_selector({"app": app})).tolist()) for app in _APPS},
        "in x": sorted(pods.rows_selected(frozenset(("x",)), ()).tolist()),
        "being deleted": sorted(pods.rows_of(pods.terminating()).tolist()),
        "with terms": sorted(pods.carriers.row_of.tolist()),
    }


def _workloads(snapshot: Snapshot) -> Any:
    by_namespace = snapshot.workloads.by_namespace
    return {namespace: (sorted(found.services), found.controllers) for namespace, found in by_namespace.items()}


def _storage(snapshot: Snapshot) -> Any:
    storage = snapshot.storage
    by_class = {name: {each.name for each in volumes} for name, volumes in storage.volumes_by_class.items()}
    return [each or {} for each in (storage.claims, storage.volumes, storage.classes, storage.limits, by_class)]


def _csi(snapshot: Snapshot) -> Any:
    csi = snapshot.csi
    groups = (csi.capacities or {}, csi.attachments or {})
    return [csi.drivers or {}, *({name: set(facts) for name, facts in group.items()} for group in groups)]


def _devices(snapshot: Snapshot) -> Any:
    devices = snapshot.devices
    slices = devices.slices
    pools = {} if slices is None else {name: list(found) for name, found in slices.of_pool.items()}
    known = (devices.classes, devices.claims, devices.templates, devices.by_resource)
    return [
        *(each or {} for each in known),
        (pools, devices.allocated, devices.shared) if pools or devices.allocated or devices.shared else {},
        set(devices.taint_rules),
    ]


SAID: Mapping[str, Callable[[Snapshot], Any]] = {
    "generation": lambda snapshot: snapshot.generation >= 0,
    "nodes": _nodes,
    "namespaces": lambda snapshot: dict(snapshot.namespaces),
    "rows": lambda snapshot: dict(snapshot.rows),
    "labels": lambda snapshot: {key: _values(snapshot, key) for key in _LABELS},
    "taints": lambda snapshot: [snapshot.taints.classes[each] for each in snapshot.taints.class_of],
    "unschedulable": lambda snapshot: snapshot.unschedulable.tolist(),
    "allowed_pods": lambda snapshot: snapshot.allowed_pods.tolist(),
    "load": _load,
    "images": lambda snapshot: {name: _image(snapshot, name) for name in ("a:1", "b:1")},
    "pods": _pods,
    "workloads": _workloads,
    "storage": _storage,
    "csi": _csi,
    "devices": _devices,
    "priority_classes": lambda snapshot: dict(snapshot.priority_classes),
    "full_quotas": lambda snapshot: dict(snapshot.full_quotas),
    "runtime_classes": lambda snapshot: dict(snapshot.runtime_classes.by_name),
    "limit_ranges": lambda snapshot: {name: set(map(str, each)) for name, each in snapshot.limit_ranges.items()},
    "disruption_budgets": lambda snapshot: set(snapshot.disruption_budgets or ()),
    "volcano": lambda snapshot: [
        each or {}
        for each in (
            snapshot.volcano.queues,
            snapshot.volcano.groups,
            snapshot.volcano.hyper_nodes and snapshot.volcano.hyper_nodes.by_name,
        )
    ],
    "kai": lambda snapshot: [getattr(snapshot.kai, each.name) or {} for each in fields(KaiObjects)],
    "kueue": lambda snapshot: [getattr(snapshot.kueue, each.name) or {} for each in fields(KueueObjects)],
    "pod_groups": lambda snapshot: [
        each or frozenset() for each in (snapshot.pod_groups.coscheduling, snapshot.pod_groups.native)
    ],
    "left_out": lambda snapshot: snapshot.left_out.names,
    # Read at intervals, so an object that has just been created can be missing.
    "scheduler_evidence": lambda _: "not of watches",
    "release": lambda _: "not of watches",
    "nominated": lambda snapshot: dict(snapshot.nominated.by_node),
    "pending": lambda snapshot: dict(snapshot.pending),
    "assumed": lambda snapshot: snapshot.assumed,
    "is_without_pods": lambda snapshot: snapshot.is_without_pods,
    "plugins": lambda snapshot: sorted(snapshot.plugins),
    "allocatable_columns": lambda snapshot: {each: snapshot.allocatable(each).tolist() for each in _RESOURCES},
    "_zeros": lambda snapshot: snapshot.requested("none").tolist(),
}


def made_anew(objects: Iterable[Object]) -> Snapshot:
    """Return the snapshot of a cluster file of `objects`."""
    return snapshot_from_documents(Document("objects", each) for each in objects)


def _values(snapshot: Snapshot, key: str) -> list[str | None]:
    found: list[str | None] = [None] * len(snapshot.nodes)
    for value in {info.node.labels.get(key) for info in snapshot.nodes}:
        if value is not None:
            for row in snapshot.labels.matches(key, "In", [value]).nonzero()[0]:
                found[row] = value
    return found


def _image(snapshot: Snapshot, name: str) -> tuple[int, list[bool]] | None:
    image = snapshot.images.get(name)
    return image and (image.size_bytes, image.held.tolist())
