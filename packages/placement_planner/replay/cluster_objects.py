"""Read the pods of a cluster, and the objects that create pods, as if they were created now."""

from collections import Counter
from collections.abc import Iterable, Iterator

from placement_planner.replay.admission import Admission, admission_of
from webhook.admission.missed import Scope, created_on_node, owner_of
from webhook.cluster.snapshot import Namespace
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import prefixed_errors
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.pod_template_path import group_of
from webhook.kube.workloads.workload_kinds import Kinds

_Name = tuple[str, str, str]


def admissions_of_objects(documents: Iterable[Document], kinds: Kinds, left_out: Counter[str]) -> Iterator[Admission]:
    """Yield the pods, without the nodes that a scheduler chose, and one pod of each template.

    A stored pod contains injected fields, which look like its own values. So if the object that created it is present,
    the template of this object is used instead.

    Raises:
        InvalidInput: an object cannot be read.
    """
    objects = list(documents)
    known: dict[str, Scope] = {}
    owners: set[_Name] = set()
    for each in objects:
        kind = str(each.content.get("kind"))
        if kind == "Namespace":
            with prefixed_errors(each.place):
                read = Namespace.of(each.content)
            known[_name(each.content)] = Scope(read.annotations, read.labels)
        elif kind != "Pod" and (group_of(each.content.get("apiVersion")), kind) in kinds:
            owners.add((_namespace(each.content), kind, _name(each.content)))
    for each in objects:
        content, namespace = each.content, _namespace(each.content)
        if content.get("kind") == "Pod" and isinstance(field(content, "metadata"), dict):
            owner = owner_of(content)
            if owner is not None and (namespace, *owner) in owners:
                left_out["pod whose object is there, too: its template stands for it"] += 1
            else:
                yield _admission(_unbound(content), each, known.get(namespace), str(owner or ""))
        elif (namespace, str(content.get("kind")), _name(content)) in owners and not _is_owned(content, owners):
            with prefixed_errors(each.place):
                templates = pod_sets(content, kinds)
            for template in templates:
                yield _admission(template.pod, each, known.get(namespace), f"{content['kind']}/{_name(content)}")


def _admission(pod: JsonObject, document: Document, scope: Scope | None, owner: str) -> Admission:
    metadata = field(pod, "metadata") or {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    return admission_of(pod, _namespace(pod), scope=scope, name=name, owner=owner, place=document.place)


def _is_owned(content: JsonObject, owners: set[_Name]) -> bool:
    """Return whether the controller of an object, such as the Deployment of a ReplicaSet, is also present."""
    references = field(content, "metadata", "ownerReferences")
    namespace = _namespace(content)
    return any(
        (namespace, str(each.get("kind")), str(each.get("name"))) in owners
        for each in (references if isinstance(references, list) else ())
        if field(each, "controller")
    )


def _unbound(pod: JsonObject) -> JsonObject:
    """Return a stored pod as it was created: without the scheduler's node, but with the fields that its creator set."""
    spec = field(pod, "spec")
    if not isinstance(spec, dict) or not spec.get("nodeName") or created_on_node(pod):
        return pod
    return {**pod, "spec": {key: value for key, value in spec.items() if key != "nodeName"}}


def _namespace(content: JsonObject) -> str:
    found = field(content, "metadata", "namespace")
    return found if isinstance(found, str) and found else DEFAULT_NAMESPACE


def _name(content: JsonObject) -> str:
    return str(field(content, "metadata", "name") or "")
