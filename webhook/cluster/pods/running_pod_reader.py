"""Read bound pods fast. Tens of thousands of pods come from a few templates, and most events change no facts."""

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

import orjson
from msgspec import ValidationError
from msgspec.json import Decoder, decode, encode

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms
from webhook.cluster.interner import Interner
from webhook.cluster.left_out import (
    ALL_NAMESPACES,
    POD_LABELS,
    POD_PORTS,
    POD_PREFERENCES,
    POD_REPULSION,
    POD_VOLUMES,
)
from webhook.cluster.node_info import RunningPod
from webhook.documents.field import InvalidInput
from webhook.kube.names import KUEUE_POD_SET
from webhook.kube.pod.bound_status import controller_in, is_preempted_in, waiting_reason_in
from webhook.kube.pod.gang_key import GANG, GangKey, gangs_of, workload_of
from webhook.kube.pod.pod_status import NO_STATUS, Time
from webhook.kube.pod.pod_view import Volume
from webhook.kube.pod.rare_facts import RareFacts
from webhook.kube.pod.stored_pod import StoredPod
from webhook.kube.pod.volumes import MIGRATIONS, NO_VOLUMES, PodReference, PodVolumes, read_volumes
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

_LABELS = Decoder(dict[str, str] | None)
# The JSON of an API server escapes no letter and no slash.
_GANG = GANG.encode()


class RunningPodReader:
    """Reads pods as `RunningPod.of`, once for each template, and too large ones in part. Not thread-safe."""

    def __init__(self) -> None:
        self._labels = Interner()
        self._last_started = 0
        self._templates: ByteCache[bytes, RunningPod] = ByteCache(_BUDGET_BYTES)

    def read(self, pod: JsonObject) -> RunningPod:
        """Return the facts of the bound pod `pod`, a raw API object. A StoredPod is read fastest.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        stored = StoredPod.of(pod)
        try:
            found = self._read(stored) if stored is not None and stored.node_name else None
        except (ValidationError, InvalidInput):
            found = None
        return RunningPod.of(pod) if found is None else found

    def _read(self, pod: StoredPod) -> RunningPod:
        """Return the facts of `pod`."""
        view, namespace, name = pod.view, pod.namespace, pod.view.metadata.name or ""
        metadata, status, key = view.metadata, view.status or NO_STATUS, view.running()
        template = self._templates.get(key)
        if template is None:
            template = self._read_template(key)
        labels, volumes, left_out = template.labels, NO_VOLUMES, template.rare.left_out
        gangs: tuple[GangKey, ...] = ()
        if metadata.labels:
            labels_key = bytes(metadata.labels)
            labels = self._labels.known(labels_key)
            if labels is None:
                labels = self._labels.known_or(_LABELS.decode(labels_key) or {}, labels_key)
        if restricting := view.restricting_volumes:
            volumes = _volumes(restricting, namespace, PodReference(name, metadata.uid or ""))
            # Disks without a claim are not modelled, and can count for the limit of a CSI driver.
            if not MIGRATIONS.keys().isdisjoint(volumes.inline_disks) or len(volumes.claims) > _MOST_ITEMS:
                volumes, left_out = NO_VOLUMES, (*left_out, (POD_VOLUMES, ALL_NAMESPACES))
        if len(labels) > _MOST_LABELS:
            labels, left_out = {}, (*left_out, (POD_LABELS, namespace))
        annotations = metadata.annotations
        workload = workload_of({"annotations": decode(annotations)}) if annotations and KUEUE_POD_SET in labels else ""
        if bytes(annotations).find(_GANG) >= 0:
            owners = decode(metadata.owner_references) if metadata.owner_references else None
            gangs = gangs_of(namespace, {"annotations": decode(annotations), "ownerReferences": owners})
        is_terminating, rare = view.is_terminating, template.rare
        reason = waiting_reason_in(view.spec, status)
        if is_terminating or reason or workload or left_out is not rare.left_out:
            deleted = int(decode(metadata.deletion_timestamp, type=Time).timestamp()) if is_terminating else 0
            is_preempted = is_terminating and is_preempted_in(status)
            rare = RareFacts(left_out, deleted, is_preempted, reason, rare.host_ports, rare.scheduler, workload)
        started = int(status.start_time.timestamp()) if status.start_time else 0
        if started == self._last_started:
            # A number takes as much memory as four fields, and pods of a gang start together.
            started = self._last_started
        self._last_started = started
        # Without keywords, which take as long as the rest of the call.
        return RunningPod(
            intern(namespace),
            name,
            labels,
            is_terminating,
            intern(pod.node_name),
            template.requests,
            template.non_zero,
            template.terms,
            template.priority,
            volumes,
            template.is_reserved,
            gangs,
            started,
            controller_in(bytes(metadata.owner_references)),
            rare,
        )

    def _read_template(self, key: bytes) -> RunningPod:
        content = orjson.loads(key)
        template = RunningPod.of(content)
        if len(key) > _MOST_BYTES:
            template = _without_large_parts(template, content["spec"].get("affinity"))
        self._templates.put(key, template, parsed_bytes(key))
        return template


def _volumes(restricting: Sequence[Volume], namespace: str, pod: PodReference) -> PodVolumes:
    spec = Reader({"volumes": decode(encode(restricting))})
    volumes = read_volumes(spec, namespace, pod)
    spec.finish()
    return volumes


def _without_large_parts(template: RunningPod, affinity: Any) -> RunningPod:
    """Return `template` without those lists of ports, terms and resources that are longer than in any real pod."""
    # Those of each node come first, and zeros last: no node offers so many resources that others are left out.
    requests = sorted(template.requests.items(), key=lambda each: (not each[1], "/" in each[0]))
    found = template._replace(requests=dict(requests[:_MOST_ITEMS]))
    if len(orjson.dumps(affinity)) > _MOST_BYTES:
        found = found._replace(terms=NO_TERMS, rare=found.rare._replace(left_out=_left_out_of(template.terms)))
    if len(found.rare.host_ports) > _MOST_ITEMS:
        left_out = *found.rare.left_out, (POD_PORTS, ALL_NAMESPACES)
        found = found._replace(rare=found.rare._replace(host_ports=(), left_out=left_out))
    return found


def _left_out_of(terms: PodTerms) -> tuple[tuple[str, str], ...]:
    """Return the parts to record as left out if `terms` are not kept. Required anti-affinity can exclude other pods."""
    if not terms.anti_required:
        return ((POD_PREFERENCES, ALL_NAMESPACES),)
    namespaces = frozenset[str]().union(*[each.namespaces for each in terms.anti_required])
    if len(namespaces) > _MOST_NAMESPACES or any(each.namespace_selector is not None for each in terms.anti_required):
        return ((POD_REPULSION, ALL_NAMESPACES),)
    return tuple([(POD_REPULSION, each) for each in sorted(namespaces)])
