"""Warnings about the queue and the group of a pod, which batch schedulers report late, elsewhere, or not at all.

The warnings never change the patch. Only a PodGroup that never starts changes the verdict. There is no warning about
kinds that are not known and objects that are left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from webhook.backends.backend import BatchNames
from webhook.backends.kueue import Kueue
from webhook.cluster.batch.kueue import ClusterQueue, FlavorQuota, ResourceFlavor, ResourceGroup
from webhook.cluster.batch.queues import KaiQueue
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.names import KAI_DEFAULT_QUEUE, VOLCANO_DEFAULT_QUEUE
from webhook.kube.selectors import requirement_matches
from webhook.placement.pod.network_limit import network_limit
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.reasons.gang_request import Demand, GangDemand, excess, pod_group_of
from webhook.placement.reasons.pod_group_start import never_starts

_LONGEST_SHOWN = 63
# More ancestors than any tree of queues has; queues can be their own ancestors.
_MOST_ANCESTORS = 16
# Each is compared with each flavor. A pod can name thousands.
_MOST_TERMS = 64
# Each is a warning.
_MOST_FLAVORS = 3
_SILENTLY = "the pod waits without a condition or an Event until it does"


def queue_warnings(
    names: Iterable[BatchNames], pod: PodInfo, snapshot: Snapshot, gang: GangDemand | None = None
) -> Iterator[str]:
    """Yield the warnings about the queues and groups in `names`, which the admitted `pod` names. `gang` is its gang."""
    for each in names:
        kind, name = _KIND_OF_TENANTS[each.backend], each.queue if each.backend == "kueue" else each.group
        if snapshot.left_out.names and snapshot.left_out.has(kind, pod.inter_pod.namespace, name):
            continue
        found = _BY_BACKEND[each.backend]
        yield from found(each, Demand.of(each, pod, gang) if gang else Demand(pod), snapshot)
        group = pod_group_of(each, pod.inter_pod.namespace, snapshot) if each.group else None
        if group and (never := never_starts(group, pod, gang.request.size if gang else 0, snapshot)):
            yield f"{_HOLDERS[each.backend]}: {never}"


def _volcano(names: BatchNames, pods: Demand, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warnings about `pods` of Volcano. Volcano creates a group for a pod that names none.

    Source: volcano.sh/volcano/pkg/scheduler/plugins/proportion/proportion.go, queueAllocatable and JobEnqueueableFn
    """
    objects, namespace = snapshot.volcano, pods.pod.inter_pod.namespace
    queue_name, network, of = names.queue or VOLCANO_DEFAULT_QUEUE, names.network, " of the pods"
    if names.group and objects.groups is not None:
        group = objects.groups.get((namespace, names.group))
        if group is None:
            yield f"Volcano: PodGroup {_shown(names.group)} does not exist in {namespace}: {_SILENTLY}"
            return
        if group.phase == "Pending":
            yield f"Volcano: PodGroup {_shown(names.group)} is Pending: no pod of it is scheduled before it is enqueued"
        queue_name, network, of = group.queue or VOLCANO_DEFAULT_QUEUE, group.network, f" of PodGroup {group.name}"
    if network is not None and (why := network_limit(network, snapshot).ignored):
        yield f"Volcano ignores the network topology{_shown(of)}: {why}"
    if objects.queues is None:
        return
    queue = objects.queues.get(queue_name)
    if queue is None:
        yield f"Volcano: queue {_shown(queue_name)} does not exist: {_SILENTLY}"
    elif queue.state not in ("", "Open"):
        yield f"Volcano: queue {_shown(queue_name)} is {_shown(queue.state)}: it starts no pods"
    elif excess := pods.excess(queue.capability, queue.allocated, snapshot):
        yield f"Volcano: with {pods}, queue {_shown(queue_name)} exceeds its capability: {excess}"


def _kai(names: BatchNames, pods: Demand, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warnings about a pod of KAI. The label of an owner has precedence over the label of the pod.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/proportion/capacity_policy/max_allowed_check.go
    """
    objects, namespace = snapshot.kai, pods.pod.inter_pod.namespace
    queue_name = names.queue or ("" if names.has_owner else KAI_DEFAULT_QUEUE)
    if names.is_replaced:
        yield f"KAI: PodGroup {_shown(names.group)} has no effect: KAI makes other PodGroups for pods with an owner"
    elif names.group and objects.groups is not None:
        group = objects.groups.get((namespace, names.group))
        if group is None:
            yield f"KAI: PodGroup {_shown(names.group)} does not exist in {namespace}: {_SILENTLY}"
            return
        queue_name = group.queue
    if objects.queues is None or not queue_name:
        return
    if queue_name not in objects.queues:
        yield f"KAI: Queue '{_shown(queue_name)}' does not exist."
    elif queue_name in objects.parents:
        yield f"KAI: queue {_shown(queue_name)} has child queues: name one of them, pods belong into a leaf queue"
    for queue in _ancestry(objects.queues, queue_name):
        if excess := pods.excess(queue.limits, queue.allocated, snapshot):
            yield f"KAI: OverLimit: with {pods}, queue {_shown(queue.name)} exceeds its limit: {excess}"
            return


def _kube_scheduler(names: BatchNames, pods: Demand, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warning about a pod of the Coscheduling plugin, or of kube-scheduler's own gangs.

    Source: sigs.k8s.io/scheduler-plugins/pkg/coscheduling/coscheduling.go, Permit;
    k8s.io/kubernetes/pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, PreEnqueue
    """
    namespace, known = pods.pod.inter_pod.namespace, snapshot.pod_groups
    groups, follows = known.native, _SILENTLY
    if names.backend == "coscheduling":
        groups, follows = known.coscheduling, "no pod of it is bound"
    if groups is not None and (namespace, names.group) not in groups:
        holder = _HOLDERS[names.backend]
        yield f"{holder}: PodGroup {_shown(names.group)} does not exist in {namespace}: {follows}"


def _ancestry(queues: Mapping[str, KaiQueue], name: str) -> Iterator[KaiQueue]:
    for _ in range(_MOST_ANCESTORS):
        queue = queues.get(name)
        if queue is None:
            return
        yield queue
        name = queue.parent


def _kueue(names: BatchNames, pods: Demand, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warnings about a pod that is labelled with a queue of Kueue.

    Source: sigs.k8s.io/kueue/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    objects, evidence = snapshot.kueue, snapshot.scheduler_evidence
    if evidence is not None and evidence.groups.isdisjoint(Kueue.api_groups):
        yield f"Kueue: no sign that it runs: no API group {Kueue.api_groups[0]}; the pod is scheduled without its queue"
    if objects.local_queues is None:
        return
    local = objects.local_queues.get((pods.pod.inter_pod.namespace, names.queue))
    if local is None:
        yield (
            f"Kueue: LocalQueue {_shown(names.queue)} does not exist in {pods.pod.inter_pod.namespace}: "
            "the pod stays gated until it does"
        )
        return
    if local.is_stopped:
        yield f"Kueue: LocalQueue {_shown(names.queue)} is stopped: it admits no pods"
    if objects.cluster_queues is None:
        return
    queue = objects.cluster_queues.get(local.cluster_queue)
    if queue is None:
        yield f"Kueue: ClusterQueue {_shown(local.cluster_queue)} does not exist: the pod stays gated until it does"
        return
    if queue.is_stopped:
        yield f"Kueue: ClusterQueue {_shown(queue.name)} is stopped: it admits no pods"
    yield from _quota_warnings(queue, pods, objects.flavors)
    yield from _flavors_without_nodes(queue, pods, snapshot)


def _quota_warnings(queue: ClusterQueue, pods: Demand, flavors: Mapping[str, ResourceFlavor] | None) -> Iterator[str]:
    """Yield the warning about `pods` that exceed the quota. Each set of pods gets one flavor of a resource group."""
    for group in queue.groups:
        for pod, count in pods.sets:
            if all(name not in group.resources for name, _ in pod.requests):
                continue
            matching = None if flavors is None else _flavors_for(pod, group, flavors)
            fitting = [each for each in group.flavors if matching is None or each.flavor in matching]
            if not fitting:
                named = ", ".join(_shown(each.flavor) for each in group.flavors[:3]) or "none"
                cause = f"no flavor of ClusterQueue {_shown(queue.name)} ({named})"
                yield f"Kueue: {cause} has the node labels that the pod requires: it stays gated"
                return
            requests = {name: amount * count for name, amount in pod.requests}
            short = [excess(requests, _limits(each)) for each in fitting]
            if all(short):
                yield f"Kueue: the quota of ClusterQueue {_shown(queue.name)} can never hold {pods}: {short[0]}"
                return
        limits = [_limits(each) for each in group.flavors]
        limited = frozenset(group.resources).intersection(*limits)
        in_all = {name: sum(each[name] for each in limits) for name in sorted(limited)}
        if text := excess(pods.requests, in_all):
            yield f"Kueue: the quota of ClusterQueue {_shown(queue.name)} can never hold {pods}: {text}"
            return


def _flavors_without_nodes(queue: ClusterQueue, pods: Demand, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning for each flavor that `pods` can get although no node has its node labels."""
    flavors, requested = snapshot.kueue.flavors, {name for pod, _ in pods.sets for name, _ in pod.requests}
    if flavors is None or not snapshot.nodes:
        return
    for group in queue.groups:
        if requested.isdisjoint(group.resources):
            continue
        for name in sorted(_flavors_for(pods.pod, group, flavors))[:_MOST_FLAVORS]:
            labels = flavors[name].node_labels
            matching = [snapshot.labels.matches(key, "In", (value,)) for key, value in labels.items()]
            if matching and not np.logical_and.reduce(matching).any():
                shown = ", ".join(f"{_shown(key)}={_shown(value)}" for key, value in [*labels.items()][:3])
                yield f"Kueue: no node has the labels of flavor {_shown(name)} ({shown}): its pods find no node"


def _limits(quota: FlavorQuota) -> Mapping[str, int]:
    return {name: most for name, most in quota.most.items() if most is not None}


def _flavors_for(pod: PodInfo, group: ResourceGroup, flavors: Mapping[str, ResourceFlavor]) -> set[str]:
    """Return the flavors of `group` whose node labels match the pod's required node affinity and nodeSelector.

    Only the label keys of these flavors are compared. A flavor that does not exist matches nothing.

    Source: sigs.k8s.io/kueue/pkg/scheduler/flavorassigner/flavorassigner.go, flavorSelector
    """
    known = {each.flavor: flavors[each.flavor].node_labels for each in group.flavors if each.flavor in flavors}
    terms = pod.required or ()
    if len(terms) + len(pod.node_selector) > _MOST_TERMS:
        return set(known)
    keys = {key for labels in known.values() for key in labels}
    selected = {key: value for key, value in pod.node_selector if key in keys}
    relevant = [[each._asdict() for each in term.expressions if each.key in keys] for term in terms]
    is_any = not relevant or not all(relevant)
    return {
        name
        for name, labels in known.items()
        if selected.items() <= labels.items()
        and (is_any or any(all(requirement_matches(each, labels) for each in term) for term in relevant))
    }


def _shown(name: str) -> str:
    return cut(name, _LONGEST_SHOWN)


_BY_BACKEND: Mapping[str, Callable[[BatchNames, Demand, Snapshot], Iterator[str]]] = {
    "volcano": _volcano,
    "kai": _kai,
    "kueue": _kueue,
    "coscheduling": _kube_scheduler,
    "native": _kube_scheduler,
}
# The kind that tenants create.
_KIND_OF_TENANTS = {
    "volcano": "PodGroup.scheduling.volcano.sh",
    "kai": "PodGroup.scheduling.run.ai",
    "coscheduling": "PodGroup.scheduling.x-k8s.io",
    "native": "PodGroup.scheduling.k8s.io",
    "kueue": "LocalQueue.kueue.x-k8s.io",
}
_HOLDERS = {"volcano": "Volcano", "kai": "KAI", "coscheduling": "Coscheduling", "native": "kube-scheduler"}
