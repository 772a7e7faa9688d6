"""Check whether the PodGroup of a pod allows it to start. Otherwise, its pods are Infeasible."""

from dataclasses import replace

from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.objects.priority_class import priority_class_named
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.names import KAI_DEFAULT_SUBGROUP, KAI_SUBGROUP
from webhook.placement.framework.result import Placement
from webhook.placement.pod.network_limit import NetworkLimit, network_limit
from webhook.placement.pod.pod_info import PodInfo

_LONGEST_SHOWN = 63
_CAN_CHANGE = "its PodGroup can change"


def never_starts(group: PodGroup, pod: PodInfo, size: int, snapshot: Snapshot) -> str:
    """Return why `group` never starts `pod` of a gang of `size` (0: unknown), or "" if it may.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one_podgroup.go, validatePodGroup
    """
    shown = cut(group.name, _LONGEST_SHOWN)
    if size and group.members > size:
        return f"PodGroup {shown} needs {group.members} pods, and the gang has {size}: it never starts"
    subgroup = dict(pod.inter_pod.labels).get(KAI_SUBGROUP) or KAI_DEFAULT_SUBGROUP
    if group.subgroups and subgroup not in group.subgroups:
        label = f"label {KAI_SUBGROUP}={cut(subgroup, _LONGEST_SHOWN)}"
        return f"PodGroup {shown} has no subgroup for a pod with the {label}: it never starts"
    own, of_group = pod.preemption.normalized_for(snapshot), _priority(group, snapshot)
    if of_group is None or own.class_name or own.priority == of_group:
        return ""
    return (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        f"got {own.priority} and {of_group}: PodGroup {shown} never starts"
    )


def _priority(group: PodGroup, snapshot: Snapshot) -> int | None:
    """Return the priority of a PodGroup of kube-scheduler, which the API server sets, or None if it is not known."""
    if group.priority is not None or not group.priority_class:
        return group.priority
    found = priority_class_named(group.priority_class, snapshot.priority_classes)
    return None if found is None else found.value


def as_grouped(placement: Placement, group: PodGroup, pod: PodInfo, size: int, snapshot: Snapshot) -> Placement:
    """Return `placement`, adjusted to the PodGroup `group` of `pod`, which is in a gang of `size`.

    A pod that the group never starts is Infeasible. It is not denied, because PodGroups can change and the view may be
    older.
    """
    is_counted = placement.gang is not None and placement.gang.together is not None
    if group.topology_key and placement.verdict == "Infeasible" and is_counted:
        placement = replace(placement, deny_exemption=placement.deny_exemption or _CAN_CHANGE)
    shown, can_differ = cut(group.name, _LONGEST_SHOWN), len(group.subgroups) > 1 and _lacks_others(placement)
    if never := never_starts(group, pod, size, snapshot):
        if can_differ or placement.verdict in ("Feasible", "Waiting"):
            return _never(placement, never)
        # Its group keeps back this pod, too, where the scheduler would start it before the others.
        placement = replace(placement, gang=placement.gang and replace(placement.gang, own=None))
    if can_differ:
        message = f"{placement.message.removesuffix('.')}. The pods of other subgroups of PodGroup {shown} can differ."
        return replace(placement, verdict="Unknown", message=message)
    limit = network_limit(group.network, snapshot) if group.network is not None else NetworkLimit()
    key, doubt = group.topology_key, group.doubt or _doubt_of_preference(group, pod, snapshot)
    if placement.verdict == "Feasible" and (doubt or (key and not is_counted and not limit.ignored)):
        what = "has a topologyConstraint, which is" if group.subgroups else "has subGroups, which are"
        what = f"runs in one domain of {cut(key, _LONGEST_SHOWN)}, which is" if key else what
        why = f": {doubt or limit.unknown}" if doubt or limit.unknown else ""
        reason = f"PodGroup {shown} {what} not modelled{why}"
        message = f"{placement.message.removesuffix('.')}. {reason}."
        unmodelled = (*placement.unmodelled, group.topology_plugin)
        return replace(placement, verdict="Unknown", node=None, message=message, unmodelled=unmodelled)
    if group.is_basic and placement.gang is not None and placement.verdict == "Infeasible":
        exemption = f"PodGroup {shown} has the policy basic, which starts its pods one by one"
        return replace(placement, deny_exemption=placement.deny_exemption or exemption)
    return placement


def _lacks_others(placement: Placement) -> bool:
    """Return whether there is room for the pod, but not for as many like it as its gang has pods."""
    gang = placement.gang
    if gang is None or placement.verdict not in ("Waiting", "Infeasible"):
        return False
    return bool(gang.most) if placement.verdict == "Infeasible" else gang.fit > gang.placed


def _doubt_of_preference(group: PodGroup, pod: PodInfo, snapshot: Snapshot) -> str:
    """Return why `group` of KAI may not get all nodes for `pod` although it only prefers a domain, or "".

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/topology/common.go, isNodePartOfTopology;
    job_filtering.go, calculateRelevantDomainLevels
    """
    if not group.topology or group.topology_key:
        return ""
    topology, shown = (snapshot.kai.topologies or {}).get(group.topology), cut(group.topology, _LONGEST_SHOWN)
    if topology is None or group.preferred_key not in topology.levels:
        return f"no single Topology is known that has the level {cut(group.preferred_key, _LONGEST_SHOWN)}"
    is_outside = snapshot.labels.paths(topology.levels)[0] < 0
    for resource, amount in pod.requests:
        is_outside &= snapshot.allocatable(resource) >= amount
    return f"KAI gives it no nodes without the labels of Topology {shown}" if is_outside.any() else ""


def _never(placement: Placement, reason: str) -> Placement:
    gang = placement.gang
    if gang is not None:
        gang = replace(gang, own=None, next_message=gang.next_message and reason)
    return replace(
        placement,
        verdict="Infeasible",
        node=None,
        message=f"{placement.message.removesuffix('.')}. {reason[:1].upper()}{reason[1:]}.",
        scores={},
        suggestions=(),
        remedies=(),
        deny_exemption=_CAN_CHANGE,
        gang=gang,
    )
