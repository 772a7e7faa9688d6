"""VolumeZone: a volume with zone labels is only accessible from nodes of these zones."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.volumes import PersistentVolume
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import REGION_LABEL, ZONE_LABEL
from webhook.kube.pod.volumes import ClaimUse
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult
from webhook.placement.framework.volume_claims import VolumePlugin, is_missing, not_found
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_CONFLICT = "node(s) had no available volume zone"

# The labels of volumes and nodes; each deprecated label with its replacement.
_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    ZONE_LABEL: ZONE_LABEL,
    REGION_LABEL: REGION_LABEL,
}
_DELIMITER = "__"


class VolumeZone(VolumePlugin):
    """Compare the zone labels of the pod's bound volumes with those of nodes. A node without zone labels passes.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone/volume_zone.go
    """

    name = "VolumeZone"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes if a claim of `pod` or its volume is missing, or if the unbound claim binds immediately."""
        for use in pod.volumes.claims if nodes.storage.claims is not None else ():
            if not use.is_ephemeral and (reason := _claim_rejection(use, pod.volumes.namespace, nodes)):
                return PreFilterResult(reason=reason, is_transient=True)
        return ALL_NODES

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes outside the zones of a volume of `pod`."""
        volumes = [volume for volume in _bound_volumes(pod, nodes) if any(label in volume.labels for label in _LABELS)]
        if not volumes:
            return ()
        has_zone = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for label in _LABELS:
            has_zone |= nodes.labels.matches(label, "Exists", ())
        reached = np.ones(len(nodes.nodes), dtype=np.bool_)
        for volume in in_time(volumes, expired):
            for label in _LABELS:
                zones = _zones(volume, label)
                if zones:
                    reached &= _is_in(nodes, label, zones)
        return (Failure(ERR_REASON_CONFLICT, has_zone & ~reached),)


def _claim_rejection(use: ClaimUse, namespace: str, nodes: Snapshot) -> str:
    """Return the reason why the claim in `namespace` rejects all nodes, or "" if it does not or is not known.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone/volume_zone.go, getPVbyPod
    """
    storage = nodes.storage
    claim = (storage.claims or {}).get((namespace, use.name))
    if claim is None:
        return not_found(use.name) if is_missing(use, namespace, nodes) else ""
    if claim.volume_name:
        lacks_volume = storage.volumes is not None and claim.volume_name not in storage.volumes
        return f'persistentvolume "{claim.volume_name}" not found' if lacks_volume else ""
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    if storage.classes is None:
        return ""
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    return "" if storage_class.waits_for_consumer else "PersistentVolume had no name"


def _bound_volumes(pod: PodInfo, nodes: Snapshot) -> list[PersistentVolume]:
    found = []
    for use in pod.volumes.claims:
        claim = (nodes.storage.claims or {}).get((pod.volumes.namespace, use.name))
        volume = (nodes.storage.volumes or {}).get(claim.volume_name) if claim else None
        if volume is not None and not use.is_ephemeral:
            found.append(volume)
    return found


def _zones(volume: PersistentVolume, label: str) -> tuple[str, ...]:
    """Return the zones of the label, or none if it is missing or has an empty part."""
    zones = tuple(zone.strip() for zone in volume.labels.get(label, "").split(_DELIMITER))
    return zones if all(zones) else ()


def _is_in(nodes: Snapshot, label: str, zones: tuple[str, ...]) -> Mask:
    """Return the nodes that have one of `zones` in `label` or, without this label, in the label that replaces it."""
    own = nodes.labels.matches(label, "In", zones)
    return own | (nodes.labels.matches(label, "DoesNotExist", ()) & nodes.labels.matches(_LABELS[label], "In", zones))
