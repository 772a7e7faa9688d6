"""Read bound pods fast: tens of thousands of pods come from a few templates, and most events change no fact."""

from collections.abc import Mapping
from dataclasses import replace
from sys import intern
from typing import Any

import orjson

from webhook.cluster.index.pod_term import NO_TERMS
from webhook.cluster.node_info import Interner, RunningPod, read_pod_volumes
from webhook.documents.field import InvalidInput
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.gang_key import gangs_of
from webhook.kube.pod.resources import RESIZE_PENDING
from webhook.kube.pod.volumes import NO_VOLUMES
from webhook.kube.reader import Reader
from webhook.runtime.byte_cache import ByteCache, parsed_bytes

JsonObject = Mapping[str, Any]

# Far more than a real pod has. Users decide how large a pod is, and a pod stays in the view.
_MOST_BYTES = 16 * 1024
_MOST_ITEMS = 256
_MOST_LABELS = 128
# Those of about two thousand usual templates.
_BUDGET_BYTES = 16 * 1024 * 1024

_SPEC_FIELDS = ("overhead", "resources", "hostNetwork", "schedulerName", "priority", "affinity")
_CONTAINER_FIELDS = ("name", "resources", "ports", "restartPolicy")
_STATUS_FIELDS = ("resources", "allocatedResources")
_CONTAINER_STATUS_FIELDS = ("name", "resources", "allocatedResources")
_CONDITION_FIELDS = ("type", "reason")
# The fields `matchLabelKeys` and `mismatchLabelKeys` of a term make it depend on the labels of the pod.
_LABEL_KEYS = b"abelKeys"


class RunningPodReader:
    """Reads pods as `RunningPod.of`; pods of one template are read once and share their facts.

    The facts of a pod that is too large are partial. An instance is for one thread.
    """

    def __init__(self) -> None:
        self._labels = Interner()
        self._templates: ByteCache[bytes, RunningPod] = ByteCache(_BUDGET_BYTES)

    def read(self, pod: JsonObject) -> RunningPod:
        """Return the facts of the bound pod `pod`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        metadata, spec = pod.get("metadata"), pod.get("spec")
        if not isinstance(metadata, dict) or not isinstance(spec, dict):
            return RunningPod.of(pod)
        reader = Reader()
        namespace = reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE
        name = reader.text(metadata.get("name"), "metadata.name")
        labels = reader.text_map(metadata.get("labels"), "metadata.labels")
        node_name = reader.text(spec.get("nodeName"), "spec.nodeName")
        volumes = read_pod_volumes(reader, metadata, spec, namespace, name)
        template = None if reader.errors else self._template(namespace, labels, spec, pod.get("status"))
        if template is None:
            return RunningPod.of(pod)
        is_partial = template.is_partial
        volume_count = len(volumes.claims) + len(volumes.disks) + len(volumes.attached_inline)
        if len(labels) > _MOST_LABELS or volume_count > _MOST_ITEMS:
            labels, volumes, is_partial = {}, NO_VOLUMES, True
        return RunningPod(
            namespace=intern(namespace),
            name=name,
            labels=self._labels.known_or(labels, tuple(labels.items())) if labels else template.labels,
            is_terminating=metadata.get("deletionTimestamp") is not None,
            node_name=intern(node_name),
            requests=template.requests,
            non_zero_milli_cpu=template.non_zero_milli_cpu,
            non_zero_memory_bytes=template.non_zero_memory_bytes,
            host_ports=template.host_ports,
            terms=template.terms,
            priority=template.priority,
            volumes=volumes,
            scheduler=template.scheduler,
            gangs=gangs_of(namespace, metadata),
            is_partial=is_partial,
        )

    def _template(self, namespace: str, labels: Mapping[str, str], spec: JsonObject, status: Any) -> RunningPod | None:
        """Return a pod with the facts that the pods of one template share; None if these are malformed."""
        content = {"metadata": {"namespace": namespace}, "spec": _spec(spec), "status": _status(status)}
        try:
            key = orjson.dumps(content)
            if "affinity" in content["spec"] and _LABEL_KEYS in key:
                content["metadata"]["labels"] = labels
                key = orjson.dumps(content)
            template = self._templates.get(key)
            if template is None:
                template = RunningPod.of(content)
                if len(key) > _MOST_BYTES:
                    template = _without_large_parts(template, spec.get("affinity"))
                self._templates.put(key, template, parsed_bytes(key))
        except (orjson.JSONEncodeError, InvalidInput):  # nested too deeply, or malformed
            return None
        return template


def _without_large_parts(template: RunningPod, affinity: Any) -> RunningPod:
    """Return `template` without what is larger than in any real pod: ports, terms, or resources beside the first."""
    has_large_terms = len(orjson.dumps(affinity)) > _MOST_BYTES
    if not has_large_terms and len(template.host_ports) + len(template.requests) <= _MOST_ITEMS:
        return template
    # Those of each node come first.
    most = sorted(template.requests.items(), key=lambda each: "/" in each[0])[:_MOST_ITEMS]
    return replace(template, requests=dict(most), host_ports=(), terms=NO_TERMS, is_partial=True)


def _spec(spec: JsonObject) -> dict[str, Any]:
    """Return what `RunningPod.of` reads of `spec` beside node and volumes; malformed parts stay as they are."""
    read = {name: value for name in _SPEC_FIELDS if (value := spec.get(name)) is not None}
    for name in ("containers", "initContainers"):
        if name in spec:
            read[name] = _parts(spec[name], _CONTAINER_FIELDS)
    return read


def _status(status: Any) -> Any:
    if not isinstance(status, dict):
        return status
    read = {name: value for name in _STATUS_FIELDS if (value := status.get(name)) is not None}
    for name in ("containerStatuses", "initContainerStatuses"):
        if name in status:
            read[name] = _parts(status[name], _CONTAINER_STATUS_FIELDS)
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        conditions = [each for each in conditions if not isinstance(each, dict) or each.get("type") == RESIZE_PENDING]
    if conditions is not None and conditions != []:
        read["conditions"] = _parts(conditions, _CONDITION_FIELDS)
    return read


def _parts(items: Any, names: tuple[str, ...]) -> Any:
    """Return the fields `names` of each of `items`; what is malformed stays as it is."""
    if not isinstance(items, list):
        return items
    return [
        {name: value for name in names if (value := item.get(name)) is not None} if isinstance(item, dict) else item
        for item in items
    ]
