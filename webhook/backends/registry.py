"""The registry of the backends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from webhook.backends.backend import Backend, BatchNames
from webhook.backends.kai import OWN_GROUP, Kai
from webhook.backends.kube_scheduler import Coscheduling, Default, Native
from webhook.backends.kueue import QUEUE, TOPOLOGIES, Kueue
from webhook.backends.volcano import Volcano
from webhook.cluster.batch.network_topology import NetworkTopology
from webhook.documents.documents import field
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.schedulers import SchedulerSettings, settings_of

BACKENDS: Mapping[str, type[Backend]] = {
    each.name: each for each in (Default, Volcano, Kai, Coscheduling, Native, Kueue)
}

# The API groups of schedulers that no backend stands for.
_OTHER_API_GROUPS: Mapping[str, Sequence[str]] = {
    "runai-scheduler": ("scheduling.run.ai",),
    "koord-scheduler": ("scheduling.koordinator.sh",),
    "scheduler-plugins-scheduler": ("scheduling.x-k8s.io",),
}


def backend_of(spec: PolicySpec, scheduler: str) -> type[Backend]:
    """Return the backend of `scheduler`. The policy need not name this scheduler."""
    return BACKENDS[settings_of(spec.schedulers, scheduler).backend]


def queueing_backend_of(spec: PolicySpec, scheduler: str) -> type[Backend]:
    """Return the backend that reads queues and gangs of pods of `scheduler`: its own, or Kueue before it."""
    return Kueue if spec.queueing == "kueue" else backend_of(spec, scheduler)


def gang_key(policy_key: str, spec: PolicySpec, scheduler: str) -> str:
    """Return `policy_key` if `scheduler` starts the gangs whole that this annotation names, else ""."""
    is_read = callable(backend_of(spec, scheduler).terms.get("gang")) and spec.queueing != "kueue"
    return policy_key if is_read else ""


def api_groups_of(schedulers: Mapping[str, SchedulerSettings], scheduler: str) -> Sequence[str]:
    """Return the API groups of the CRDs of `scheduler`, one of the policy's `schedulers`, or none without CRDs."""
    backend = BACKENDS[settings_of(schedulers, scheduler).backend]
    return backend.api_groups or _OTHER_API_GROUPS.get(scheduler, ())


def batch_names_of(pod: Mapping[str, Any], backend: type[Backend]) -> tuple[BatchNames, ...]:
    """Return the queue and group that the admitted `pod`, a raw API object, names for its `backend` and for Kueue."""
    metadata = pod["metadata"]
    found = []
    for each in (backend, Kueue):
        queue, group = _first(metadata, each.queue_at), str(field(pod, *each.group_at) or "") if each.group_at else ""
        if (each.queue_at or group) and (queue or each is not Kueue):
            has_owner = bool(metadata.get("ownerReferences"))
            # KAI reads the annotation of an owner instead, which is not known.
            is_read, annotations = not (has_owner and each is Kai), metadata.get("annotations") or {}
            level = str(annotations.get(each.required_level_at, "")) if each.required_level_at and is_read else ""
            # The PodGroup decides if the pod names one.
            network = NetworkTopology.of_annotations(annotations) if each is Volcano and not group else None
            is_replaced = each is Kai and has_owner and group != "" and not group.startswith(OWN_GROUP)
            is_whole = _holds_gang(pod, each, is_replaced=is_replaced)
            found.append(BatchNames(each.name, queue, group, has_owner, is_whole, is_replaced, level, network))
    return tuple(found)


def starts_whole(pod: Mapping[str, Any], names: Iterable[BatchNames]) -> bool:
    """Return whether the pods of the gang of the admitted `pod` start together or not at all.

    `names` are the batch names of the pod. A batch scheduler starts pods one by one if it does not know their gang.
    Kueue holds a gang until its quota has room for all of it, even if the nodes have no room, unless it schedules by
    topology.
    """
    for each in names:
        if each.starts_whole and each.backend != Kueue.name:
            return True
    metadata = pod["metadata"]
    is_of_queue = bool((metadata.get("labels") or {}).get(QUEUE) or metadata.get("ownerReferences"))
    return is_of_queue and not TOPOLOGIES.isdisjoint(metadata.get("annotations") or ())


def _holds_gang(pod: Mapping[str, Any], backend: type[Backend], *, is_replaced: bool) -> bool:
    """Return whether `backend` knows the gang of `pod`, and holds its pods until all of them can start.

    If the group of the pod `is_replaced`, its name does not count.
    """
    sets = [paths for paths in backend.gang_fields if not (is_replaced and backend.group_at in paths)]
    if any(all(field(pod, *path) for path in paths) for paths in sets):
        return True
    owners = field(pod, "metadata", "ownerReferences") if backend.gang_owners else None
    return any(_kind(each) in backend.gang_owners for each in owners or () if field(each, "controller"))


def _kind(owner: Mapping[str, Any]) -> tuple[str, str]:
    return str(owner.get("apiVersion")).rpartition("/")[0], str(owner.get("kind"))


def _first(metadata: Mapping[str, Any], places: Sequence[tuple[str, str]]) -> str:
    for part, key in places:
        if value := (metadata.get(part) or {}).get(key):
            return str(value)
    return ""
