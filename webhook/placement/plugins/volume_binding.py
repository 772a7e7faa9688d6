"""VolumeBinding: the volumes of a pod must be accessible, available or provisionable on its node."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.cluster.storage.storage import Storage
from webhook.cluster.storage.volumes import PersistentVolume, PersistentVolumeClaim
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.volumes import MIGRATIONS
from webhook.kube.release import Change
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult
from webhook.placement.framework.scoring import LEAST_UTILIZED, UtilizationScore
from webhook.placement.framework.storage_scores import storage_scores
from webhook.placement.framework.volume_claims import (
    VolumePlugin,
    claims_of,
    is_missing,
    not_found,
    owner_error,
    reaches,
    unbound_failures,
    waits_for_consumer,
)
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
ERR_REASON_PV_NOT_EXIST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(VolumePlugin):
    """Check the node affinity of bound volumes, and find volumes or a provisioner for unbound claims.

    The score depends on the share of the found volumes, or of the provisioner's capacity, that the claims request.

    On nodes without pods, a lack of volumes or of provisioner capacity is ignored.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/volume_binding.go and binder.go
    """

    name = "VolumeBinding"

    def __init__(self, score: UtilizationScore = LEAST_UTILIZED) -> None:
        self._score = score

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes if a claim cannot be used, or if it is unbound and has immediate binding."""
        storage = nodes.storage
        if storage.claims is None:
            return ALL_NODES
        for use in pod.volumes.claims:
            claim = storage.claims.get((pod.volumes.namespace, use.name))
            if is_missing(use, pod.volumes.namespace, nodes):
                reason = not_found(use.name)
            elif claim is None:
                continue
            else:
                reason = _claim_rejection(claim, use.name)
                reason = reason or (owner_error(claim, pod.volumes) if use.is_ephemeral else "")
            if reason:
                return PreFilterResult(reason=reason, is_transient=True)
        if any(_waits_for_controller(claim, storage) for claim in claims_of(pod, storage)):
            return PreFilterResult(reason=UNBOUND_IMMEDIATE, is_transient=True)
        return ALL_NODES

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that cannot access a bound volume, or on which a claim gets no volume."""
        storage = nodes.storage
        claims = list(claims_of(pod, storage))
        if not claims or storage.volumes is None:
            return unbound_failures(claims, nodes, expired) if claims else ()
        node_conflict = np.zeros(len(nodes.nodes), dtype=np.bool_)
        missing = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for claim in in_time(claims, expired):
            if claim.is_bound:
                volume = storage.volumes.get(claim.volume_name)
                left = ~node_conflict & ~missing
                if volume is None:
                    missing |= left & (not nodes.is_without_pods)
                else:
                    node_conflict |= left & ~_reaches_bound(volume, nodes, expired)
        return (
            Failure(ERR_REASON_NODE_CONFLICT, node_conflict),
            *unbound_failures(claims, nodes, expired),
            Failure(ERR_REASON_PV_NOT_EXIST, missing),
        )

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return 0 for nodes without a volume or a known capacity for an unbound claim, or None before 1.37."""
        if not nodes.release.has(Change.STORAGE_CAPACITY_SCORES):
            return None
        return storage_scores(claims_of(pod, nodes.storage), nodes, rows, self._score, expired)


def _claim_rejection(claim: PersistentVolumeClaim, name: str) -> str:
    if claim.is_lost:
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    return f'persistentvolumeclaim "{name}" is being deleted' if claim.is_being_deleted else ""


def _waits_for_controller(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether the claim is unbound and a controller, not a scheduler, binds it."""
    if claim.is_bound or (storage.classes is None and claim.storage_class and not claim.volume_name):
        return False
    return bool(claim.volume_name) or not waits_for_consumer(claim, storage)


def _reaches_bound(volume: PersistentVolume, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that can access a bound volume. On nodes with CSI migration, the terms of the CSI driver count.

    If it is not known which nodes have CSI migration, a match of either terms is enough, because unknown objects must
    not exclude a node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, tryTranslatePVToCSI
    """
    reached = reaches(volume, nodes, expired)
    if volume.translated == volume.required:
        return reached
    by_driver = any_matches(volume.translated or (), nodes.labels, None, expired)
    if nodes.storage.limits is None:
        return reached | by_driver
    plugin = MIGRATIONS[volume.source].plugin
    migrated = [
        nodes.rows[name]
        for name, limits in nodes.storage.limits.items()
        if plugin in limits.migrated_plugins and name in nodes.rows
    ]
    reached[migrated] = by_driver[migrated]
    return reached
