"""A cluster out of what `kubectl get nodes,pods,namespaces -A -o json` (or yaml) prints."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.nominated_pods import NominatedPod, NominatedPods, is_nominated
from webhook.cluster.optional_kinds import OPTIONAL_KINDS, Facts, FactsByKind, snapshot_fields
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.kube.documents import Document, field
from webhook.kube.field import FieldError, InvalidInput
from webhook.kube.wellknown import ENDED_PHASES

T = TypeVar("T")


def snapshot_from_documents(documents: Iterable[Document]) -> Snapshot:
    """The snapshot of the nodes, pods, namespaces and OPTIONAL_KINDS among `documents`; other kinds are passed over.

    Of a further kind without an object nothing is known, unless an empty list of it says that there is none: it may not
    have been asked for. But where StorageClasses or
    CSINodes are there, so are all the claims, and volumes if none of the claims names one; and where ResourceClaims or
    templates of them are there, so are all the DeviceClasses.

    A pod counts on the node that it is bound to unless it has ended, one being deleted too. A pod that waits for a
    node, or whose node is not there, counts nowhere; one that is nominated to a node is among `nominated`.

    Raises:
        InvalidInput: an object is malformed, or a node or a bound pod stands twice; holds every error, with the place
            and the name of the object.
    """
    errors: list[FieldError] = []
    nodes: dict[str, Node] = {}
    pods: dict[tuple[str, str], RunningPod] = {}
    nominated: list[NominatedPod] = []
    namespaces: dict[str, Namespace] = {}
    found: dict[str, list[Facts]] = {}
    for document in documents:
        kind, content = str(document.content.get("kind")), document.content
        further = OPTIONAL_KINDS.get(kind.removesuffix("List"))
        if further and further.api_version == content.get("apiVersion"):
            known = found.setdefault(kind.removesuffix("List"), [])
            known += [] if kind.endswith("List") else _read_all(document, further.read, errors)
            continue
        if content.get("apiVersion") != "v1":
            continue
        if kind == "Node" and (node := _read(document, Node.of, errors)):
            _put(nodes, node.name, node, document, errors)
        elif kind == "Pod" and occupies_node(content) and (pod := _read(document, RunningPod.of, errors)):
            _put(pods, (pod.namespace, pod.name), pod, document, errors)
        elif kind == "Pod" and is_nominated(content) and (waiting := _read(document, NominatedPod.of, errors)):
            nominated.append(waiting)
        elif kind == "Namespace" and (namespace := _read(document, Namespace.of, errors)):
            namespaces[str(field(content, "metadata", "name"))] = namespace
    if errors:
        raise InvalidInput(errors)
    return replace(_snapshot(nodes, pods.values(), namespaces, found), nominated=NominatedPods.of(nominated))


def _snapshot(
    nodes: Mapping[str, Node],
    pods: Iterable[RunningPod],
    namespaces: Mapping[str, Namespace],
    found: FactsByKind,
) -> Snapshot:
    pods_of: dict[str, list[RunningPod]] = {name: [] for name in nodes}
    for pod in pods:
        if pod.node_name in pods_of:
            pods_of[pod.node_name].append(pod)
    infos = (NodeInfo.of(node, pods_of[name]) for name, node in nodes.items())
    # A file without Services is taken to be of a cluster without: any pod could have one, and most files have none.
    return Snapshot.of(infos, namespaces, **snapshot_fields({"Service": (), **_told_to_be_none(found), **found}))


def _told_to_be_none(found: FactsByKind) -> FactsByKind:
    """The kinds without an object that have been asked for, by all appearances: there is none of them.

    Nobody asks for the classes and limits of storage and leaves out claims; a claim that names a volume shows that
    volumes were left out. Nor does anybody ask for claims of devices and leave out the classes that these name, or for
    classes and devices and leave out the claims that have got some.
    """
    told: dict[str, Iterable[Any]] = {}
    if {"ResourceClaim", "ResourceClaimTemplate"} & found.keys():
        told["DeviceClass"] = ()
    if {"DeviceClass", "ResourceSlice"} <= found.keys():
        told["ResourceClaim"] = ()
    if {"StorageClass", "CSINode"} & found.keys():
        claims = found.get("PersistentVolumeClaim", ())
        has_volumes = any(claim.volume_name for claim in claims)
        told |= {"PersistentVolumeClaim": []} | ({} if has_volumes else {"PersistentVolume": []})
    return told


def occupies_node(pod: Mapping[str, Any]) -> bool:
    """Whether `pod`, a raw object of the API, is bound and has not ended."""
    return bool(field(pod, "spec", "nodeName")) and field(pod, "status", "phase") not in ENDED_PHASES


def _read(document: Document, read: Callable[[Mapping[str, Any]], T], errors: list[FieldError]) -> T | None:
    try:
        return read(document.content)
    except InvalidInput as error:
        errors += [each.prefixed(_place(document)) for each in error.errors]
        return None


def _read_all(document: Document, read: Callable[[Mapping[str, Any]], T], errors: list[FieldError]) -> list[T]:
    facts = _read(document, read, errors)
    return [] if facts is None else [facts]


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
