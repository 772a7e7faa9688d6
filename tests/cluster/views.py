"""What a snapshot says, as plain values that can be compared: made anew or kept up, it must say the same."""

from collections.abc import Iterable
from typing import Any

from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document
from webhook.kube.label_selector import exact_selector

Object = dict[str, Any]

_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
_LABELS = ("kubernetes.io/hostname", "zone", "pool")


def said(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that plugins can ask `snapshot`."""
    rows = range(len(snapshot.nodes))
    pods = snapshot.pods
    return {
        "nodes": [
            (info.node, sorted(info.pods, key=lambda pod: (pod.namespace, pod.name)), info.requested)
            for info in snapshot.nodes
        ],
        "counted by node": [(info.counted_milli_cpu, info.counted_memory_bytes) for info in snapshot.nodes],
        "namespaces": dict(snapshot.namespaces),
        "rows": dict(snapshot.rows),
        "labels": {key: _values(snapshot, key) for key in _LABELS},
        "taints": [snapshot.taints.classes[snapshot.taints.class_of[row]] for row in rows],
        "unschedulable": snapshot.unschedulable.tolist(),
        "allowed pods": snapshot.allowed_pods.tolist(),
        "allocatable": {each: snapshot.allocatable(each).tolist() for each in _RESOURCES},
        "requested": {each: snapshot.requested(each).tolist() for each in _RESOURCES},
        "counted": {each: snapshot.counted(each).tolist() for each in _RESOURCES},
        "pods": snapshot.load.pods.tolist(),
        "host ports": {key: set(taken) for key, taken in snapshot.load.host_ports.items()},
        "images": {name: _image(snapshot, name) for name in ("a:1", "b:1")},
        "pods by app": {
            app: sorted(pods.rows_selected(None, exact_selector({"app": app})).tolist()) for app in ("web", "db")
        },
        "pods in x": sorted(pods.rows_selected(["x"], ()).tolist()),
        "pods being deleted": sorted(pods.rows_of(pods.classes.terminating()).tolist()),
        "pods with terms": sorted(pods.carrier_row_of.tolist()),
    }


def made_anew(objects: Iterable[Object]) -> Snapshot:
    """The snapshot of a cluster file of `objects`."""
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
