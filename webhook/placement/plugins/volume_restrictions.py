"""VolumeRestrictions: claims with the access mode ReadWriteOncePod. Disks without a claim are not modelled."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.placement.framework.interface import Failure, PreFilterResult
from webhook.placement.framework.volume_claims import VolumePlugin, is_missing, not_found
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class VolumeRestrictions(VolumePlugin):
    """Scan the running pods only if the pod has such a claim, which is rare.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go
    """

    name = "VolumeRestrictions"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes if a claim that `pod` uses does not exist."""
        for use in pod.volumes.claims:
            if is_missing(use, pod.volumes.namespace, nodes):
                return PreFilterResult(reason=not_found(use.name), is_transient=True)
        return PreFilterResult()

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return all nodes if a ReadWriteOncePod claim of `pod` is in use."""
        if nodes.is_without_pods or not self._is_in_use(pod, nodes):
            return ()
        return (Failure(ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT, np.ones(len(nodes.nodes), dtype=np.bool_)),)

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether a ReadWriteOncePod claim of `pod` is in use."""
        return self._is_in_use(pod, nodes)

    def _is_in_use(self, pod: PodInfo, nodes: Snapshot) -> bool:
        claims = nodes.storage.claims or {}
        alone = {
            use.name
            for use in pod.volumes.claims
            if not use.is_ephemeral
            and (claim := claims.get((pod.volumes.namespace, use.name))) is not None
            and _READ_WRITE_ONCE_POD in claim.access_modes
        }
        if not alone:
            return False
        return any(
            use.name in alone
            for info in nodes.nodes
            for running in info.pods
            if running.volumes.claims and running.namespace == pod.volumes.namespace
            for use in running.volumes.claims
        )
