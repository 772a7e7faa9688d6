"""Reasons not to deny an Infeasible pod: transient node conditions and resources that are not known."""

from collections.abc import Callable

from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.taints import CONDITION_DOMAINS, UNSCHEDULABLE, Toleration
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.unmodelled import unknown_resources

CORDONED = "cordoned, not ready or not well"


def deny_exemption(info: PodInfo, snapshot: Snapshot, count_fitting: Callable[[PodInfo], int]) -> str:
    """Return the reason not to deny an Infeasible pod, `info`; empty if there is none.

    `count_fitting` returns how many nodes of `snapshot`, without their pods, can take a pod.
    """
    tolerating = tolerating_conditions(info, snapshot)
    if tolerating is not info and (count := count_fitting(tolerating)):
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"{nodes} would do that {'is' if count == 1 else 'are'} {CORDONED}"
    unknown = unknown_resources(info, snapshot)
    if not unknown:
        return ""
    rest = tuple([each for each in tolerating.requests if each[0] not in unknown])
    if not count_fitting(tolerating._replace(requests=rest)):
        return ""
    return f"no node offers {', '.join(unknown)}, and whether a DeviceClass stands behind it is not known"


def tolerating_conditions(info: PodInfo, snapshot: Snapshot) -> PodInfo:
    """Return the pod with tolerations for transient node conditions: cordoned, not ready, under memory pressure."""
    taints = {taint.key for taints in snapshot.taints.classes for taint in taints}
    transient = {key for key in taints if key.startswith(CONDITION_DOMAINS)}
    if snapshot.unschedulable.any():
        transient.add(UNSCHEDULABLE)
    if not transient:
        return info
    return info._replace(tolerations=info.tolerations.union(Toleration(key, "Exists", "", "") for key in transient))
