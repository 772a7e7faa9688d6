"""Pending pods: the fields that a scheduler reads, and whether a pod waits for a scheduler."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import ref

import orjson
from msgspec import Raw, ValidationError
from msgspec.json import decode

from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.nominated_pods import read_nominated_pod
from webhook.documents.parts import object_at
from webhook.kube.names import (
    ENDED_PHASES,
    KAI_SHARES,
    KUEUE_WORKLOAD,
    LIMIT_RANGER,
    REQUIRED_TOPOLOGIES,
    VOLCANO_GROUP,
)
from webhook.kube.pod.gang_key import gang_annotations
from webhook.kube.pod.pod_identity import PodIdentity, short_text
from webhook.kube.pod.pod_status import NO_STATUS, PodStatus
from webhook.kube.pod.pod_view import PodView
from webhook.kube.pod.stored_pod import StoredPod, node_and_phase

_CONTAINERS = ("containers", "initContainers")
_METADATA_FIELDS = ("labels", "ownerReferences")
_STATUS_FIELDS = ("resourceClaimStatuses", "extendedResourceClaimStatus")
# Type, status and reason of the condition by which a scheduler says that no node can take the pod.
_UNSCHEDULABLE = ("PodScheduled", "False", "Unschedulable")
# The beginning of Volcano's message on a gang that does not start: `…, 3 Pending, 4 minAvailable; Pending: …`.
_NOT_READY = "pod group is not ready, "
_COUNT = re.compile(r"(\d{1,9}) (\w+)")
_LONGEST_COUNTS = 256
_WITHOUT_SIBLINGS = " cannot find enough sibling pods, "
# A pod takes up to 5 KiB of this. Reading more would delay admissions, and users decide how many pods are pending.
MOST_CONTENT_BYTES = 16 * 1024
# Each label key takes memory of its own in the index of running pods.
_MOST_LABELS = 64


class PodKey(NamedTuple):
    """The namespace and name of a pod."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that is not bound and has not ended.

    `content` is the JSON of the fields that a scheduler reads, without the name, so pods of one template have equal
    content. It is empty if these fields are too large. `created` is the creationTimestamp, and `priority` the value
    that the API server's Priority plugin sets. `is_waiting` is true if the scheduler will soon look for a node: the pod
    has no scheduling gates, is not being deleted, and is not unschedulable, or only because other pods of its gang are
    missing. `nominated` is the pod as a running pod on its nominated node.
    """

    identity: PodIdentity
    uid: str
    created: str
    priority: int
    content: bytes
    is_waiting: bool
    nominated: RunningPod | None

    @classmethod
    def of(cls, pod: Mapping[str, Any], content_of: Callable[[PodView], bytes] | None = None) -> "PendingPod":
        """Return the facts of `pod`, a raw API object for which `is_pending` is true. A StoredPod is read fastest.

        `content_of` returns the content of a pod; it may use a cache.

        Raises:
            InvalidInput: a field of a nominated pod is malformed; holds every error. Other pods are read when they are
                placed.
        """
        stored = StoredPod.of(pod)
        if stored is None:
            raw = object_at(pod, "metadata")
            uid, created = short_text(raw.get("uid")), short_text(raw.get("creationTimestamp"))
            return cls(PodIdentity.of(pod), uid, created, 0, b"", is_waiting=True, nominated=read_nominated_pod(pod))
        view = stored.view
        metadata, spec, status = view.metadata, view.spec, view.status or NO_STATUS
        has_gates = bool(spec.scheduling_gates) and bool(decode(spec.scheduling_gates))
        return cls(
            stored.identity,
            short_text(metadata.uid),
            short_text(metadata.creation_timestamp),
            _priority(spec.priority),
            (content_of or content_of_view)(view),
            is_waiting=not (has_gates or view.is_terminating or _is_unschedulable(status)),
            nominated=read_nominated_pod(pod) if status.nominated_node_name else None,
        )

    @property
    def key(self) -> PodKey:
        """Return the namespace and name."""
        return PodKey(self.identity.namespace, self.identity.name)

    def object(self) -> dict[str, Any]:
        """Return the part of the API object that a scheduler reads."""
        pod: dict[str, Any] = orjson.loads(self.content)
        metadata = {"namespace": self.identity.namespace, "name": self.identity.name, "uid": self.uid}
        return {**pod, "metadata": {**pod["metadata"], **metadata}}


def content_digest(content: bytes) -> bytes:
    """Return a short digest of `content`, the JSON of the fields that a scheduler reads from a pod."""
    return blake2b(content, digest_size=16).digest()


def scheduled_content(pod: Mapping[str, Any]) -> bytes:
    """Return the JSON of the fields of `pod` that a scheduler reads, without the name.

    It is empty if the pod is malformed, if the JSON exceeds MOST_CONTENT_BYTES, or if the pod has more labels than any
    real pod.
    """
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    labels = metadata.get("labels")
    if isinstance(labels, Mapping) and len(labels) > _MOST_LABELS:
        return b""
    kept_metadata = {name: metadata[name] for name in _METADATA_FIELDS if metadata.get(name)}
    if annotations := gang_annotations(metadata.get("annotations")) | _of_scheduler(metadata):
        kept_metadata["annotations"] = annotations
    content = {
        "metadata": kept_metadata,
        "spec": {name: _set_fields(name, value) for name, value in spec.items() if _is_set(value)},
        "status": {name: status[name] for name in _STATUS_FIELDS if status.get(name)},
    }
    try:
        data = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested too deeply
        return b""
    return data if len(data) <= MOST_CONTENT_BYTES else b""


def content_of_view(view: PodView) -> bytes:
    """Return the content of the pod in `view`, as `scheduled_content`."""
    return scheduled_content(orjson.loads(view.pending()))


class PendingPods(dict[PodKey, PendingPod]):
    """The pending pods. `origin` are those of an earlier moment; only the pods `keys` can have changed since then."""

    __slots__ = ("__weakref__", "_keys", "_origin")

    def __init__(self, pods: Mapping[PodKey, PendingPod], origin: "PendingPods | None", keys: Iterable[PodKey]) -> None:
        super().__init__(pods)
        self._origin, self._keys = None if origin is None else ref(origin), (*keys,)

    def keys_since(self, before: Mapping[PodKey, PendingPod]) -> Collection[PodKey] | None:
        """Return the keys in which the pods can differ from `before`, or None if `before` is not their origin."""
        return self._keys if self._origin is not None and self._origin() is before else None


def pending_changes(
    before: Mapping[PodKey, PendingPod], after: Mapping[PodKey, PendingPod]
) -> tuple[list[PendingPod], list[PodKey]]:
    """Return the pods of `after` that are not the same objects in `before`, and the keys that are only in `before`."""
    keys = after.keys_since(before) if isinstance(after, PendingPods) else None
    if keys is None:
        keys = (*after, *before.keys() - after.keys())
    changed = [pod for key in keys if (pod := after.get(key)) is not None and pod is not before.get(key)]
    return changed, [key for key in keys if key in before and key not in after]


def is_pending(pod: Mapping[str, Any]) -> bool:
    """Return true if `pod`, a raw API object, is not bound and has not ended."""
    node, phase = node_and_phase(pod)
    return not node and phase not in ENDED_PHASES


def _of_scheduler(metadata: Mapping[str, Any]) -> dict[str, Any]:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return {}
    read = (VOLCANO_GROUP, KUEUE_WORKLOAD, LIMIT_RANGER, *KAI_SHARES, *REQUIRED_TOPOLOGIES)
    return {key: annotations[key] for key in read if key in annotations}


def _is_set(value: Any) -> bool:
    # `priority: 0` and `hostUsers: false` differ from fields that are not set.
    return bool(value) or isinstance(value, int)


def _set_fields(name: str, value: Any) -> Any:
    """Return `value`, the field `name` of a spec. Empty fields of containers are removed."""
    if name not in _CONTAINERS or not isinstance(value, list):
        return value
    return [{key: of for key, of in each.items() if of} if isinstance(each, dict) else each for each in value]


def _priority(value: Raw) -> int:
    found = decode(value) if value else 0
    return found if isinstance(found, int) else 0


def _is_unschedulable(status: PodStatus) -> bool:
    """Return whether a scheduler found no node for the pod, except because other pods of its gang are missing."""
    try:
        conditions = status.conditions_with(_UNSCHEDULABLE[2].encode())
    except ValidationError:
        return False
    return any(
        (each.type, each.status, each.reason) == _UNSCHEDULABLE and not _wants_siblings(each.message or "")
        for each in conditions
    )


def _wants_siblings(message: str) -> bool:
    """Return whether the message of a scheduler reports that too few pods of a gang exist, rather than a lack of room.

    Source: volcano.sh/volcano/pkg/scheduler/api/job_info.go, FitError;
    sigs.k8s.io/scheduler-plugins/pkg/coscheduling/core/core.go, PreFilter
    """
    if not message.startswith(_NOT_READY):
        return _WITHOUT_SIBLINGS in message
    counts = {status: int(number) for number, status in _COUNT.findall(message[:_LONGEST_COUNTS].partition(";")[0])}
    least = counts.pop("minAvailable", 0)
    return sum(counts.values()) < least
