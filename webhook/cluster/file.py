"""A cluster out of what `kubectl get nodes,pods,namespaces -A -o json` (or yaml) prints."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from webhook.cluster.claim import Claim
from webhook.cluster.devices import DeviceClaim, DeviceClass, Devices
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.priority_class import PriorityClass
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.cluster.storage import Storage, StorageClass, VolumeLimits
from webhook.cluster.volume import Volume
from webhook.cluster.workloads import Workload, Workloads, is_workload
from webhook.kube.documents import Document, field
from webhook.kube.field import FieldError, InvalidInput

_ENDED = ("Succeeded", "Failed")

_Facts = Claim | Volume | StorageClass | VolumeLimits | DeviceClass | DeviceClaim | PriorityClass

_READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], _Facts]] = {
    ("v1", "PersistentVolumeClaim"): Claim.of,
    ("v1", "PersistentVolume"): Volume.of,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass.of,
    ("storage.k8s.io/v1", "CSINode"): VolumeLimits.of,
    ("resource.k8s.io/v1", "DeviceClass"): DeviceClass.of,
    ("resource.k8s.io/v1", "ResourceClaim"): DeviceClaim.of,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): DeviceClaim.of,
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass.of,
}

T = TypeVar("T")


def snapshot_from_documents(documents: Iterable[Document]) -> Snapshot:
    """The snapshot of the nodes, pods, namespaces and workloads among `documents`; other kinds are passed over.

    A pod counts on the node that it is bound to unless it has ended, one being deleted too. A pod that waits for a
    node, or whose node is not there, counts nowhere.

    Raises:
        InvalidInput: an object is malformed, or a node or a bound pod stands twice; holds every error, with the place
            and the name of the object.
    """
    errors: list[FieldError] = []
    nodes: dict[str, Node] = {}
    pods: dict[tuple[str, str], RunningPod] = {}
    namespaces: dict[str, Namespace] = {}
    workloads: list[Workload] = []
    facts: dict[type, list[Any]] = {}
    for document in documents:
        kind, content = document.content.get("kind"), document.content
        if is_workload(content) and (workload := _read(document, Workload.of, errors)):
            workloads.append(workload)
        if reader := _READERS.get((str(content.get("apiVersion")), str(kind))):
            _keep(facts, _read(document, reader, errors))
        if content.get("apiVersion") != "v1":
            continue
        if kind == "Node" and (node := _read(document, Node.of, errors)):
            _put(nodes, node.name, node, document, errors)
        elif kind == "Pod" and holds_a_place(content) and (pod := _read(document, RunningPod.of, errors)):
            _put(pods, (pod.namespace, pod.name), pod, document, errors)
        elif kind == "Namespace" and (namespace := _read(document, Namespace.of, errors)):
            namespaces[str(field(content, "metadata", "name"))] = namespace
    if errors:
        raise InvalidInput(errors)
    return _snapshot(nodes, pods.values(), namespaces, Workloads.of(workloads), facts)


def _snapshot(
    nodes: Mapping[str, Node],
    pods: Iterable[RunningPod],
    namespaces: Mapping[str, Namespace],
    workloads: Workloads,
    facts: Mapping[type, list[Any]],
) -> Snapshot:
    pods_of: dict[str, list[RunningPod]] = {name: [] for name in nodes}
    for pod in pods:
        if pod.node_name in pods_of:
            pods_of[pod.node_name].append(pod)
    infos = (NodeInfo.of(node, pods_of[name]) for name, node in nodes.items())
    return Snapshot.of(
        infos,
        namespaces,
        workloads=workloads,
        storage=_storage(facts),
        devices=_devices(facts),
        priority_classes={each.name: each for each in facts.get(PriorityClass, ())},
    )


def _keep(found: dict[type, list[Any]], facts: object | None) -> None:
    if facts is not None:
        found.setdefault(type(facts), []).append(facts)


def _storage(found: Mapping[type, list[Any]]) -> Storage:
    """What was found; of a kind without an object nothing is known: it may not have been asked for."""
    return Storage.of(found.get(Claim), found.get(Volume), found.get(StorageClass), found.get(VolumeLimits))


def _devices(found: Mapping[type, list[Any]]) -> Devices:
    return Devices.of(found.get(DeviceClass), found.get(DeviceClaim, ()))


def holds_a_place(pod: Mapping[str, Any]) -> bool:
    """Whether `pod`, a raw object of the API, is bound and has not ended."""
    return bool(field(pod, "spec", "nodeName")) and field(pod, "status", "phase") not in _ENDED


def _read(document: Document, read: Callable[[Mapping[str, Any]], T], errors: list[FieldError]) -> T | None:
    try:
        return read(document.content)
    except InvalidInput as error:
        errors += [each.under(_place(document)) for each in error.errors]
        return None


def _put(found: dict[Any, T], key: Any, value: T, document: Document, errors: list[FieldError]) -> None:
    if key in found:
        name = field(document.content, "metadata", "name")
        detail = f"this {document.content['kind']} stands twice; give each once"
        errors.append(FieldError(f"{_place(document)}: metadata.name", "Duplicate value", name, detail))
    found[key] = value


def _place(document: Document) -> str:
    kind, name = document.content.get("kind"), field(document.content, "metadata", "name")
    namespace = field(document.content, "metadata", "namespace")
    full_name = f"{namespace}/{name}" if isinstance(namespace, str) else f"{name}"
    return f"{document.place}: {kind} {full_name}" if isinstance(name, str) else document.place
