"""The gang of a pod as written, and the gang of an object: the pods that must run together, perhaps in one domain."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from webhook.backends.backend import Backend
from webhook.backends.kai import TOPOLOGY, Kai
from webhook.backends.kueue import MIN_PARALLELISM, QUEUE, QUEUED_WHOLE
from webhook.backends.references import GangRequest, Within, strictest
from webhook.backends.registry import backend_of, batch_names_of, gang_key, queueing_backend_of, starts_whole
from webhook.backends.volcano import Volcano
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.kube.workloads.pod_template_path import WorkloadKind, gang_size
from webhook.mutation.workload.gathering import within_of
from webhook.placement.reasons.gang_request import grouped, in_topology, network_of_job, within_network
from webhook.policy.keys import positive
from webhook.policy.policy import Policy

_ANNOTATIONS = ("metadata", "annotations")
VOLCANO_JOB = ("batch.volcano.sh", "Job")


class TemplateGang(NamedTuple):
    """The gang that the `pods` pods of a template request, or None, and the domain in which it runs, or None.

    `starts_whole` is true if they start together or not at all.
    """

    request: GangRequest | None
    starts_whole: bool
    within: Within | None
    pods: int


def gang_of_pod(pod: Mapping[str, Any], policy: Policy, snapshot: Snapshot) -> GangRequest | None:
    """Return the gang of `pod` by its annotations and its PodGroup in `snapshot`, or None if there is no valid size."""
    size, name = (field(pod, "metadata", "annotations", key) for key in (policy.keys.gang_size, policy.keys.gang))
    scheduler = field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
    name = name if isinstance(name, str) else ""
    if not (isinstance(size, str) or name) or not isinstance(scheduler, str):
        return None
    try:
        number = positive(size) if isinstance(size, str) else 0
    except ValueError:
        return None
    names = batch_names_of(pod, backend_of(policy.spec, scheduler))
    missing = "" if name else gang_key(policy.keys.gang, policy.spec, scheduler)
    within = within_of(pod, policy)
    request = GangRequest(name, number, scheduler, starts_whole(pod, names), missing=missing, within=within)
    return grouped(request, names, field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE, snapshot)


def gang_of_object(
    content: JsonObject,
    kind: WorkloadKind,
    templates: Sequence[TemplateGang],
    scheduler: str,
    policy: Policy,
    snapshot: Snapshot,
) -> GangRequest | None:
    """Return the gang of an object of `kind` with the pods of `templates`, or None.

    Without an annotation, the size is that in the object, if the object defines that its pods run together. For some
    kinds, KAI makes a gang by itself.
    """
    key, pods = (kind.group, kind.kind), sum([each.pods for each in templates])
    own = backend_of(policy.spec, scheduler)
    is_grouped, is_of_volcano = key in own.gang_owners, own is Volcano and key == VOLCANO_JOB
    wholes = [each.starts_whole for each in templates]
    is_whole = is_grouped or all(wholes)
    annotated = [each.request for each in templates if each.request is not None]
    name = str(field(content, "metadata", "name") or "")
    if annotated:
        largest = max(annotated, key=lambda each: each.size)
        found = largest._replace(name=largest.name or name, starts_whole=is_whole or largest.starts_whole)
    else:
        try:
            size = gang_size(content, kind, pods, is_grouped=is_grouped) or 1
        except InvalidInput:
            return None
        missing = gang_key(policy.keys.gang, policy.spec, scheduler) if size > 1 else ""
        found = GangRequest(name, size, scheduler, is_whole, missing=missing)
    requests = [each.within for each in templates if each.pods]
    within, backend = strictest(requests) if any(requests) else found.within, None
    if within or is_of_volcano:
        backend = queueing_backend_of(policy.spec, scheduler)
        # Without pods, no domain has to hold any.
        is_of_volcano = is_of_volcano or backend is Volcano
        within = _domain_of_object(content, kind, within, backend, snapshot, of_volcano=is_of_volcano) if pods else None
    size, is_required = found.size, within is not None and within.is_required
    is_queued = is_required and queue_of(content, kind) and not field(content, *_ANNOTATIONS, MIN_PARALLELISM)
    is_alone = is_queued or (backend is Kai and is_required)
    if is_alone and (is_queued or not is_grouped):
        # Kueue looks for a domain for all pods of a template. The PodGroup of KAI starts with one pod, which the others
        # follow into its domain, unless KAI makes a gang of the object.
        size = max(size, pods)
    if size <= 1 and not (within and (is_alone or is_of_volcano)):
        # Volcano can look for room for all pods, and one pod needs a domain, too.
        return None
    return found._replace(size=size, groups=max(1, pods // found.size) if kind.group_size else 1, within=within)


def _domain_of_object(
    content: JsonObject,
    kind: WorkloadKind,
    within: Within | None,
    backend: type[Backend],
    snapshot: Snapshot,
    *,
    of_volcano: bool,
) -> Within | None:
    """Return the request that the pods of an object run together, as its scheduler knows it; `within` is their own.

    A Volcano Job has its own. Volcano makes a PodGroup for each Job of a JobSet. The annotations of KAI that the object
    has count, not those that the policy injects.
    """
    if backend is Kai and within and within.is_required and not within.is_of_least and _has_domain_of_kai(content):
        return None
    if backend is Volcano and any(len(each.counts) > 1 for each in kind.templates):
        return None
    if of_volcano and (network := network_of_job(content, within)):
        return within_network(network, snapshot)
    return within and in_topology(within, backend.name, snapshot)


def _has_domain_of_kai(content: JsonObject) -> bool:
    annotations = field(content, *_ANNOTATIONS)
    return isinstance(annotations, Mapping) and any(str(each).startswith(TOPOLOGY) for each in annotations)


def queue_of(content: JsonObject, kind: WorkloadKind) -> Any:
    """Return the queue of Kueue that admits all pods of the object at once, if any."""
    return field(content, "metadata", "labels", QUEUE) if (kind.group, kind.kind) in QUEUED_WHOLE else None
