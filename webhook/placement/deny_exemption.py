"""Why a pod that no node could ever take may be taken even so: no denial is to rest on what passes or is not known."""

from collections.abc import Callable

from webhook.cluster.snapshot import Snapshot
from webhook.kube.taints import CONDITION_DOMAINS, UNSCHEDULABLE, Toleration, Tolerations
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.unmodelled import unknown_resources


def doubt(info: PodInfo, snapshot: Snapshot, fitting: Callable[[PodInfo], int]) -> str:
    """A doubt about `Infeasible`, or empty; `fitting`: how many nodes of `snapshot`, emptied, take such a pod."""
    patient = _patient(info, snapshot)
    if patient is not info and (count := fitting(patient)):
        nodes = "1 node" if count == 1 else f"{count} nodes"
        return f"{nodes} would do that {'is' if count == 1 else 'are'} cordoned, not ready or not well"
    unknown = unknown_resources(info, snapshot)
    if not unknown:
        return ""
    rest = tuple([each for each in patient.requests if each[0] not in unknown])
    if not fitting(patient._replace(requests=rest)):
        return ""
    return f"no node offers {', '.join(unknown)}, and whether a DeviceClass stands behind it is not known"


def _patient(info: PodInfo, snapshot: Snapshot) -> PodInfo:
    """The pod as if it tolerated the states of nodes that pass: cordoned for a while, not ready, short of memory."""
    taints = {taint.key for taints in snapshot.taints.classes for taint in taints}
    passing = {key for key in taints if key.startswith(CONDITION_DOMAINS)}
    if snapshot.unschedulable.any():
        passing.add(UNSCHEDULABLE)
    if not passing:
        return info
    tolerated = (Toleration(key, "Exists", "", "") for key in passing)
    return info._replace(tolerations=Tolerations((*info.tolerations, *tolerated)))
