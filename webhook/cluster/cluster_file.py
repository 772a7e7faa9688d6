"""Read a cluster from the output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.interner import Interner
from webhook.cluster.left_out import LeftOut, LeftOutTracker
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.optional_kinds import EVERY_OPTIONAL_KIND, Facts, FactsByKind, optional_kind_named, snapshot_fields
from webhook.cluster.pods.nominated_pods import NominatedPods
from webhook.cluster.pods.pending_pod_reader import PendingPodReader
from webhook.cluster.pods.pending_pods import PendingPod, PodKey, is_pending
from webhook.cluster.pods.running_pod_reader import RunningPodReader
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.documents.documents import Document, field
from webhook.documents.field import FieldError, InvalidInput
from webhook.kube.names import ENDED_PHASES
from webhook.kube.pod.stored_pod import node_and_phase
from webhook.kube.release import ASSUMED, Release, is_server_version, read_server_version

T = TypeVar("T")


def snapshot_from_documents(documents: Iterable[Document]) -> Snapshot:
    """Return the snapshot of the nodes, pods, namespaces and optional kinds among `documents`; others are ignored.

    An optional kind without objects is not known, because it may not have been requested. An empty list of the kind
    shows that there are none. If there are StorageClasses or CSINodes, all claims count as known, and all volumes if no
    claim names a volume. If there are ResourceClaims or ResourceClaimTemplates, all DeviceClasses count as known.

    The release of the cluster is read from the output of `kubectl version -o json`, if it is among `documents`, and the
    actions and plugins of Volcano's scheduler are read from its ConfigMap.

    A bound pod counts on its node until it has ended, even while it is being deleted. A pod on a node that does not
    exist is not counted. Pods that are not bound are in `pending`; pods with a nominated node are also in `nominated`.

    Raises:
        InvalidInput: an object is malformed, or a node, a bound pod or the release is duplicated; holds every error,
            with the place and the name of the object.
    """
    errors: list[FieldError] = []
    releases: dict[str, Release] = {}
    interner = Interner()
    read_node = partial(Node.of, interner=interner)
    read_running, read_pending = RunningPodReader().read, PendingPodReader().read
    nodes: dict[str, Node] = {}
    pods: dict[tuple[str, str], RunningPod] = {}
    pending: dict[PodKey, PendingPod] = {}
    namespaces: dict[str, Namespace] = {}
    found: dict[str, list[Facts]] = {}
    configuration: VolcanoConfiguration | None = None
    for document in documents:
        kind, content = str(document.content.get("kind")), document.content
        _take_release(document, releases, errors)
        optional = optional_kind_named(str(content.get("apiVersion")), kind.removesuffix("List"))
        if optional:
            known = found.setdefault(optional, [])
            read = EVERY_OPTIONAL_KIND[optional].read
            if not kind.endswith("List") and (facts := read_document(document, read, errors)) is not None:
                known.append(facts)
            continue
        if content.get("apiVersion") != "v1":
            continue
        if kind == "Node" and (node := read_document(document, read_node, errors)):
            _put(nodes, node.name, node, document, errors)
        elif kind == "Pod" and occupies_node(content) and (pod := read_document(document, read_running, errors)):
            _put(pods, (pod.namespace, pod.name), pod, document, errors)
        elif kind == "Pod" and is_pending(content) and (waiting := read_document(document, read_pending, errors)):
            pending[waiting.key] = waiting
        elif kind == "Namespace" and (namespace := read_document(document, Namespace.of, errors)):
            namespaces[str(field(content, "metadata", "name"))] = namespace
        else:
            configuration = configuration or VolcanoConfiguration.of(content)
    if errors:
        raise InvalidInput(errors)
    nominated = NominatedPods.of(pod.nominated for pod in pending.values() if pod.nominated)
    snapshot = _snapshot(nodes, pods.values(), namespaces, found)
    volcano = replace(snapshot.volcano, configuration=configuration)
    release, left_out = next(iter(releases.values()), ASSUMED), _left_out_of(pods.values())
    return replace(snapshot, volcano=volcano, pending=pending, nominated=nominated, release=release, left_out=left_out)


def _left_out_of(pods: Iterable[RunningPod]) -> LeftOut:
    tracker = LeftOutTracker()
    for pod in pods:
        for part, namespace in pod.rare.left_out:
            tracker.add(part, namespace, f"{pod.namespace}/{pod.name}")
    return tracker.current()


def _take_release(document: Document, releases: dict[str, Release], errors: list[FieldError]) -> None:
    is_stated = is_server_version(document.content)
    release = read_document(document, read_server_version, errors) if is_stated else None
    if release is not None:
        releases[release.version] = release
        if len(releases) > 1:
            place = f"{document.place}: serverVersion.gitVersion"
            errors.append(FieldError(place, "Duplicate value", release.version, "a cluster has one release"))


def _snapshot(
    nodes: Mapping[str, Node],
    pods: Iterable[RunningPod],
    namespaces: Mapping[str, Namespace],
    found: FactsByKind,
) -> Snapshot:
    pods_by_node: dict[str, list[RunningPod]] = {name: [] for name in nodes}
    for pod in pods:
        if pod.node_name in pods_by_node:
            pods_by_node[pod.node_name].append(pod)
    infos = (NodeInfo.of(node, pods_by_node[name]) for name, node in nodes.items())
    # A file without Services is read as a cluster without Services: any pod could match one, and most files have none.
    return Snapshot.of(infos, namespaces, **snapshot_fields({"Service": (), **_known_to_be_empty(found), **found}))


def _known_to_be_empty(found: FactsByKind) -> FactsByKind:
    """Return the kinds that were probably requested and have no objects, each with an empty table.

    Users who request StorageClasses or CSINodes also request claims. If a claim names a volume and there are no
    volumes, volumes were not requested. Users who request ResourceClaims also request the DeviceClasses that the claims
    name. Users who request DeviceClasses and ResourceSlices also request the claims with allocated devices.
    """
    empty: dict[str, Iterable[Any]] = {}
    if {"ResourceClaim", "ResourceClaimTemplate"} & found.keys():
        empty["DeviceClass"] = ()
    if {"DeviceClass", "ResourceSlice"} <= found.keys():
        empty["ResourceClaim"] = ()
    if {"StorageClass", "CSINode"} & found.keys():
        claims = found.get("PersistentVolumeClaim", ())
        has_volumes = any(claim.volume_name for claim in claims)
        empty |= {"PersistentVolumeClaim": []} | ({} if has_volumes else {"PersistentVolume": []})
    return empty


def occupies_node(pod: Mapping[str, Any]) -> bool:
    """Return true if `pod`, a raw API object, is bound and has not ended."""
    node, phase = node_and_phase(pod)
    return bool(node) and phase not in ENDED_PHASES


def read_document(document: Document, read: Callable[[Mapping[str, Any]], T], errors: list[FieldError]) -> T | None:
    """Return `read()` of the object, or None if it is malformed, with its errors in `errors`."""
    try:
        return read(document.content)
    except InvalidInput as error:
        errors += [each.prefixed(_place(document)) for each in error.errors]
        return None


def _put(found: dict[Any, T], key: Any, value: T, document: Document, errors: list[FieldError]) -> None:
    if key in found:
        name = field(document.content, "metadata", "name")
        detail = f"each {document.content['kind']} must be given once"
        errors.append(FieldError(f"{_place(document)}: metadata.name", "Duplicate value", name, detail))
    found[key] = value


def _place(document: Document) -> str:
    kind, name = document.content.get("kind"), field(document.content, "metadata", "name")
    namespace = field(document.content, "metadata", "namespace")
    full_name = f"{namespace}/{name}" if isinstance(namespace, str) else f"{name}"
    return f"{document.place}: {kind} {full_name}" if isinstance(name, str) else document.place
