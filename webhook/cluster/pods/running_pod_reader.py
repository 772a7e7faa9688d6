"""Read bound pods fast: tens of thousands of pods come from a few templates, and most events change no fact."""

from collections.abc import Mapping
from sys import intern
from typing import Any

import orjson

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms
from webhook.cluster.left_out import (
    ALL_NAMESPACES,
    POD_LABELS,
    POD_PORTS,
    POD_PREFERENCES,
    POD_REPULSION,
    POD_VOLUMES,
)
from webhook.cluster.node_info import Interner, RunningPod, read_pod_volumes
from webhook.documents.field import FieldError, InvalidInput
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.container_totals import RESIZE_PENDING
from webhook.kube.pod.gang_key import gangs_of
from webhook.kube.pod.volumes import NO_VOLUMES
from webhook.kube.reader import Reader
from webhook.runtime.byte_cache import ByteCache, parsed_bytes

JsonObject = Mapping[str, Any]

# Far more than a real pod has. Users decide how large a pod is, and a pod stays in the view.
_MOST_BYTES = 16 * 1024
_MOST_ITEMS = 256
_MOST_LABELS = 128
_MOST_NAMESPACES = 16
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

    The facts of a pod that is too large are partial. Not thread-safe.
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
        errors: list[FieldError] = []
        of_metadata, of_spec = Reader(metadata, errors), Reader(spec, errors)
        namespace, name = of_metadata.text("namespace") or DEFAULT_NAMESPACE, of_metadata.text("name")
        labels, node_name = of_metadata.text_map("labels"), of_spec.text("nodeName")
        volumes = read_pod_volumes(of_metadata, of_spec, namespace, name)
        template = None if errors else self._template(namespace, labels, spec, pod.get("status"))
        if template is None:
            return RunningPod.of(pod)
        left_out = template.left_out
        volume_count = len(volumes.claims) + len(volumes.disks) + len(volumes.attached_inline)
        if len(labels) > _MOST_LABELS:
            labels, left_out = {}, (*left_out, (POD_LABELS, namespace))
        if volume_count > _MOST_ITEMS:
            volumes, left_out = NO_VOLUMES, (*left_out, (POD_VOLUMES, ALL_NAMESPACES))
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
            left_out=left_out,
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
    # Those of each node come first, and zeros last: no node offers so many resources that others are left out.
    requests = sorted(template.requests.items(), key=lambda each: (not each[1], "/" in each[0]))
    found = template._replace(requests=dict(requests[:_MOST_ITEMS]))
    if len(orjson.dumps(affinity)) > _MOST_BYTES:
        found = found._replace(terms=NO_TERMS, left_out=_left_out_of(template.terms))
    if len(template.host_ports) > _MOST_ITEMS:
        found = found._replace(host_ports=(), left_out=(*found.left_out, (POD_PORTS, ALL_NAMESPACES)))
    return found


def _left_out_of(terms: PodTerms) -> tuple[tuple[str, str], ...]:
    """Return what is left out with `terms`: those of required anti-affinity can exclude pods that they select."""
    if not terms.anti_required:
        return ((POD_PREFERENCES, ALL_NAMESPACES),)
    namespaces = frozenset[str]().union(*[each.namespaces for each in terms.anti_required])
    if len(namespaces) > _MOST_NAMESPACES or any(each.namespace_selector is not None for each in terms.anti_required):
        return ((POD_REPULSION, ALL_NAMESPACES),)
    return tuple([(POD_REPULSION, each) for each in sorted(namespaces)])


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
