"""VolumeRestrictions: claims with the access mode ReadWriteOncePod. Disks without a claim are not modelled."""

from collections.abc import Callable, Container, Sequence

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult
from webhook.placement.framework.volume_claims import VolumePlugin, is_missing, not_found
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class VolumeRestrictions(VolumePlugin):
    """Reject all nodes if a claim with the access mode ReadWriteOncePod is in use by another pod.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go
    """

    name = "VolumeRestrictions"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes if a claim that `pod` uses does not exist."""
        for use in pod.volumes.claims:
            if is_missing(use, pod.volumes.namespace, nodes):
                return PreFilterResult(reason=not_found(use.name), is_transient=True)
        return ALL_NODES

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return all nodes if a ReadWriteOncePod claim of `pod` is in use."""
        if nodes.is_without_pods or not self._is_in_use(pod, nodes):
            return ()
        return (Failure(ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT, np.ones(len(nodes.nodes), dtype=np.bool_)),)

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether a ReadWriteOncePod claim of `pod` is in use."""
        return self._is_in_use(pod, nodes)

    def uses(self, pod: PodInfo, nodes: Snapshot) -> tuple[int, Callable[[RunningPod], int]]:
        """Return how many ReadWriteOncePod claims of `pod` are in use, and the number of uses by a running pod."""
        exclusive = _exclusive_claims(pod, nodes)
        in_use = {name for info in nodes.nodes for running in info.pods for name in _used(running, pod, exclusive)}
        return len(in_use), lambda running: len(_used(running, pod, exclusive))

    def _is_in_use(self, pod: PodInfo, nodes: Snapshot) -> bool:
        exclusive = _exclusive_claims(pod, nodes)
        return bool(exclusive) and any(_used(running, pod, exclusive) for info in nodes.nodes for running in info.pods)


def _exclusive_claims(pod: PodInfo, nodes: Snapshot) -> set[str]:
    """Return the ReadWriteOncePod claims of `pod`."""
    claims, namespace = nodes.storage.claims or {}, pod.volumes.namespace
    return {
        use.name
        for use in pod.volumes.claims
        if not use.is_ephemeral
        and (claim := claims.get((namespace, use.name))) is not None
        and _READ_WRITE_ONCE_POD in claim.access_modes
    }


def _used(running: RunningPod, pod: PodInfo, exclusive: Container[str]) -> list[str]:
    if not running.volumes.claims or running.namespace != pod.volumes.namespace:
        return []
    return [use.name for use in running.volumes.claims if use.name in exclusive]
