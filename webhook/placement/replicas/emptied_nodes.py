"""The nodes that could take a pod if no pods were running."""

from webhook.cluster.snapshot import Snapshot
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.scheduler import PodSignature, Scheduler


def nodes_without_pods(scheduler: Scheduler, signature: PodSignature, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the nodes of `snapshot` that could take the pod if no pods were running or nominated, in order.

    Pods for which room is only reserved are kept. Pod affinity to a pod on the same node is not satisfied, because that
    pod is also gone.
    """
    empty, info = snapshot.with_reserved_pods(), signature.info.normalized_for(snapshot)
    found = scheduler.feasible_rows(signature, empty)
    affinity = next((each for each in scheduler.profile.filters if isinstance(each, InterPodAffinity)), None)
    if affinity is not None and info.inter_pod.terms.required:
        found = found[affinity.nodes_near_staying(info, snapshot, empty)[found]]
    return tuple(snapshot.nodes[row].node.name for row in found)
