"""Read pending pods fast: those of one template have equal content, and most of their events change nothing of it."""

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Raw, ValidationError
from msgspec.json import Decoder, decode, encode

from webhook.cluster.pods.nominated_pods import read_nominated_pod
from webhook.cluster.pods.pending_pods import PendingPod, is_waiting, read_priority, scheduled_content
from webhook.kube.pod.pod_identity import short_text
from webhook.kube.pod.raw_pod import RawContainer
from webhook.kube.pod.stored_pod import StoredPod
from webhook.runtime.byte_cache import ByteCache

# Those of about a thousand usual templates.
_BUDGET_BYTES = 4 * 1024 * 1024

_CONTAINERS = Decoder(list[RawContainer] | None)
_OWN_PARTS = frozenset(("containers", "initContainers", "volumes"))
_STATUS_FIELDS = ("resourceClaimStatuses", "extendedResourceClaimStatus")


class PendingPodReader:
    """Reads pods as `PendingPod.of`; those of one template share their content. Not thread-safe."""

    def __init__(self) -> None:
        self._contents: ByteCache[bytes, bytes] = ByteCache(_BUDGET_BYTES)

    def read(self, pod: Mapping[str, Any]) -> PendingPod:
        """Return the facts of `pod`, a raw API object for which `is_pending` is true; a StoredPod is read fastest.

        Raises:
            InvalidInput: a field of a nominated pod is malformed; holds every error.
        """
        stored = StoredPod.of(pod)
        try:
            content = None if stored is None else self._content(stored)
        except ValidationError:
            content = None
        if stored is None or content is None:
            return PendingPod.of(pod)
        metadata, spec, status = stored.metadata, stored.spec, stored.status
        return PendingPod(
            stored.identity,
            short_text(metadata.uid),
            short_text(metadata.creation_timestamp),
            read_priority(_value(spec, "priority")),
            content,
            is_waiting(_value(spec, "schedulingGates"), stored.is_terminating, _value(status, "conditions")),
            read_nominated_pod(pod) if "nominatedNodeName" in status else None,
        )

    def _content(self, pod: StoredPod) -> bytes:
        """Return the content of `pod`.

        Raises:
            ValidationError: a part is malformed.
        """
        key = _template_key(pod)
        content = self._contents.get(key)
        if content is None:
            content = scheduled_content(orjson.loads(key))
            self._contents.put(key, content, len(key) + len(content))
        return content


def _template_key(pod: StoredPod) -> bytes:
    """Return what `scheduled_content` reads of the pods of one template, as a JSON object."""
    spec: dict[str, Any] = {name: value for name, value in pod.spec.items() if name not in _OWN_PARTS}
    for name in ("containers", "initContainers"):
        if name in pod.spec:
            spec[name] = _CONTAINERS.decode(pod.spec[name])
    if pod.volumes.restricting:
        spec["volumes"] = pod.volumes.restricting
    of_metadata = pod.metadata
    read = {
        "labels": of_metadata.labels,
        "annotations": of_metadata.annotations,
        "ownerReferences": of_metadata.owner_references,
    }
    metadata = {name: value for name, value in read.items() if value}
    status = {name: pod.status[name] for name in _STATUS_FIELDS if name in pod.status}
    return encode({"metadata": metadata, "spec": spec, "status": status})


def _value(fields: Mapping[str, Raw], name: str) -> Any:
    return decode(fields[name]) if name in fields else None
