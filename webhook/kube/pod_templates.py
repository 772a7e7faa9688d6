"""The pods that objects create: a Pod is itself; a Deployment or a Job creates pods from its template."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.kube.documents import Document, JsonObject, field
from webhook.kube.field import InvalidInput, invalid, required

# Kind to the path of its pod template. A Deployment's pods belong to a ReplicaSet.
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "Job": ("spec", "template"),
    "PodTemplate": ("template",),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
}
_OWNERS = {"CronJob": "Job", "Deployment": "ReplicaSet"}


def pods_of(document: Document) -> Iterator[Document]:
    """Yield the pods that `document` is or creates, one for each template; none for other kinds (a Service).

    Raises:
        InvalidInput: it has no kind, or its kind creates pods and it has no template.
    """
    content, place = document.content, document.place
    kind = content.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InvalidInput([required(f"{place}: kind", "must be the kind of the object, such as Pod")])
    if kind == "Pod":
        yield document
    elif kind == "Job" and str(content.get("apiVersion", "")).startswith("batch.volcano.sh/"):
        tasks = field(content, "spec", "tasks")
        if not isinstance(tasks, list):
            raise InvalidInput([required(f"{place}: spec.tasks", "a Volcano Job must have a list of tasks")])
        for index, task in enumerate(tasks):
            where = f"{place}: spec.tasks[{index}].template"
            template = field(task, "template") if isinstance(task, Mapping) else None
            yield Document(where, _from_template(template, content, kind, where))
    elif kind in _TEMPLATES:
        path = _TEMPLATES[kind]
        where = f"{place}: {'.'.join(path)}"
        yield Document(where, _from_template(field(content, *path), content, kind, where))


def _from_template(template: Any, owner: JsonObject, kind: str, where: str) -> JsonObject:
    if not isinstance(template, Mapping):
        raise InvalidInput([invalid(where, template, f"must be the pod template of the {kind}")])
    name = field(owner, "metadata", "name")
    metadata = template.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput([invalid(f"{where}.metadata", metadata, "must be an object")])
    reference = {"kind": _OWNERS.get(kind, kind), "name": str(name or ""), "controller": True}
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    made: JsonObject = {**kept, "generateName": f"{name or kind.lower()}-", "ownerReferences": [reference]}
    if namespace := field(owner, "metadata", "namespace"):
        made["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template.get("spec")}


def pod_name(pod: Mapping[str, Any]) -> str:
    """Return `NAMESPACE/NAME` of a pod, with generateName where it has no name."""
    namespace = field(pod, "metadata", "namespace") or "default"
    return f"{namespace}/{field(pod, 'metadata', 'name') or field(pod, 'metadata', 'generateName') or ''}"
