"""VolumeBinding: the volumes of a pod must be accessible, available or provisionable on its node."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.csi import whole_bytes
from webhook.cluster.storage.pv import PersistentVolume
from webhook.cluster.storage.pvc import PersistentVolumeClaim
from webhook.cluster.storage.storage import Storage
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.volumes import MIGRATIONS
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.interface import Failure, PreFilterResult
from webhook.placement.framework.volume_claims import is_missing, not_found, owner_error
from webhook.placement.pod.pod_info import PodInfo, has_volumes

ERR_REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
ERR_REASON_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
ERR_REASON_NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
ERR_REASON_PV_NOT_EXIST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


class VolumeBinding:
    """Check the node affinity of bound volumes, and find volumes or a provisioner for unbound claims.

    On nodes without pods, missing volumes and missing capacity of a provisioner are ignored.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/volume_binding.go and binder.go
    """

    name = "VolumeBinding"

    def concerns(self, pod: PodInfo, nodes: Snapshot) -> bool:
        """Return whether the pod has volumes that nodes can lack."""
        return has_volumes(pod)

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes while a claim cannot be used, or is unbound with immediate binding."""
        storage = nodes.storage
        if storage.claims is None:
            return PreFilterResult()
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
        if any(_waits_for_controller(claim, storage) for claim in _claims(pod, storage)):
            return PreFilterResult(reason=UNBOUND_IMMEDIATE, is_transient=True)
        return PreFilterResult()

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that cannot access a bound volume, or on which a claim gets no volume."""
        storage = nodes.storage
        claims = list(_claims(pod, storage))
        if not claims or storage.volumes is None:
            return _unbound_failures(claims, nodes, expired) if claims else ()
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
            *_unbound_failures(claims, nodes, expired),
            Failure(ERR_REASON_PV_NOT_EXIST, missing),
        )


def chosen_volumes(pod: PodInfo, nodes: Snapshot, row: int) -> dict[PersistentVolumeClaim, PersistentVolume | None]:
    """Return the volume that each claim of `pod` that waits for a consumer gets on a node; None: it is provisioned."""
    waiting = [each for each in _claims(pod, nodes.storage) if not each.is_bound and not each.volume_name]
    found: dict[PersistentVolumeClaim, PersistentVolume | None] = {}
    for claim in sorted(waiting, key=lambda each: each.storage_milli):
        volumes = [each for each in nodes.storage.volumes_by_class.get(claim.storage_class, ()) if _fits(claim, each)]
        kept = [volume for volume in volumes if volume.claim is not None]
        left = kept[:1] or [each for each in volumes if _is_available(claim, each) and each not in found.values()]
        reached = [each for each in left if _reaches(each, nodes, never)[row]]
        found[claim] = min(reached, key=lambda each: each.capacity_milli, default=None)
    return found


def _claims(pod: PodInfo, storage: Storage) -> Iterator[PersistentVolumeClaim]:
    for use in pod.volumes.claims:
        claim = (storage.claims or {}).get((pod.volumes.namespace, use.name))
        if claim is not None:
            yield claim


def _claim_rejection(claim: PersistentVolumeClaim, name: str) -> str:
    if claim.is_lost:
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    return f'persistentvolumeclaim "{name}" is being deleted' if claim.is_being_deleted else ""


def _waits_for_controller(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether a controller, not a scheduler, is yet to bind the claim."""
    if claim.is_bound or (storage.classes is None and claim.storage_class and not claim.volume_name):
        return False
    return bool(claim.volume_name) or not _waits_for_consumer(claim, storage)


def _waits_for_consumer(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    storage_class = (storage.classes or {}).get(claim.storage_class)
    return storage_class is not None and storage_class.waits_for_consumer


def _reaches(volume: PersistentVolume, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes whose labels match the volume's node affinity.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go, CheckNodeAffinity
    """
    if volume.required is None:
        return np.ones(len(nodes.nodes), dtype=np.bool_)
    return any_matches(volume.required, nodes.labels, None, expired)


def _reaches_bound(volume: PersistentVolume, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that can access a bound volume; migrated nodes use the terms of the CSI driver.

    If it is not known which nodes are migrated, either terms suffice: unknown objects must not exclude a node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, tryTranslatePVToCSI
    """
    reached = _reaches(volume, nodes, expired)
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


def _unbound_failures(claims: Sequence[PersistentVolumeClaim], nodes: Snapshot, expired: Expired) -> Sequence[Failure]:
    """Return the nodes on which a claim that waits for a consumer gets no volume."""
    waiting = [
        claim
        for claim in claims
        if not claim.is_bound and not claim.volume_name and _waits_for_consumer(claim, nodes.storage)
    ]
    if not waiting:
        return ()
    bind_conflict = np.zeros(len(nodes.nodes), dtype=np.bool_)
    not_enough_space = np.zeros(len(nodes.nodes), dtype=np.bool_)
    selected = [claim for claim in waiting if claim.selected_node]
    if names := {claim.selected_node for claim in selected}:
        bind_conflict[:] = True
        if len(names) == 1 and names <= set(nodes.rows):
            bind_conflict[nodes.rows[names.pop()]] = False
    to_provision = [(claim, np.ones_like(bind_conflict)) for claim in selected]
    chosen: dict[str, Mask] = {}
    unselected = sorted((claim for claim in waiting if not claim.selected_node), key=lambda each: each.storage_milli)
    to_provision += [
        (claim, ~_has_matching_volume(claim, nodes, chosen, expired)) for claim in in_time(unselected, expired)
    ]
    for claim, wanted in in_time(to_provision, expired):
        # The first claim that cannot be provisioned gives the reason of a node.
        left = wanted & ~bind_conflict & ~not_enough_space
        provisionable = _can_provision(claim, nodes, expired)
        bind_conflict |= left & ~provisionable
        not_enough_space |= left & provisionable & ~_has_capacity(claim, nodes, expired)
    return (Failure(ERR_REASON_BIND_CONFLICT, bind_conflict), Failure(ERR_REASON_NOT_ENOUGH_SPACE, not_enough_space))


def _can_provision(claim: PersistentVolumeClaim, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that the claim's class provisions volumes for. Without a provisioner, an admin may add one."""
    storage_class = (nodes.storage.classes or {})[claim.storage_class]
    if storage_class.provisioner in _NO_PROVISIONER:
        return np.full(len(nodes.nodes), nodes.is_without_pods)
    if not storage_class.allowed_topologies:
        return np.ones(len(nodes.nodes), dtype=np.bool_)
    return any_matches(storage_class.allowed_topologies, nodes.labels, None, expired)


def _has_capacity(claim: PersistentVolumeClaim, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes on which the provisioner of the claim's class has enough capacity, or need not have.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, hasEnoughCapacity
    """
    driver = (nodes.csi.drivers or {}).get((nodes.storage.classes or {})[claim.storage_class].provisioner)
    every = np.ones(len(nodes.nodes), dtype=np.bool_)
    if driver is None or not driver.tracks_capacity or nodes.csi.capacities is None or not claim.storage_milli:
        return every
    if nodes.is_without_pods:
        return every
    wanted = whole_bytes(claim.storage_milli)
    enough = [
        each.topology
        for each in nodes.csi.capacities.get(claim.storage_class, ())
        if each.limit_bytes is not None and each.limit_bytes >= wanted and each.topology is not None
    ]
    return _selected(enough, nodes, expired)


def _selected(topologies: Iterable[LabelSelector], nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that one of `topologies` selects.

    Local storage has a topology for each node, so topologies with one label are evaluated together.
    """
    selected = np.zeros(len(nodes.nodes), dtype=np.bool_)
    values: dict[str, list[str]] = {}
    for topology in in_time(topologies, expired):
        if len(topology) == 1 and topology[0].operator == "In":
            values.setdefault(topology[0].key, []).extend(topology[0].values)
            continue
        every = np.ones(len(nodes.nodes), dtype=np.bool_)
        for requirement in topology:
            every &= nodes.labels.matches(*requirement)
        selected |= every
    for key, any_of in values.items():
        selected |= nodes.labels.matches(key, "In", any_of)
    return selected


def _has_matching_volume(
    claim: PersistentVolumeClaim, nodes: Snapshot, chosen: dict[str, Mask], expired: Expired
) -> Mask:
    """Return the nodes with a volume for the claim: the smallest that fits and that is not in `chosen` on the node.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume
    """
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    volumes = [each for each in nodes.storage.volumes_by_class.get(claim.storage_class, ()) if _fits(claim, each)]
    kept = [volume for volume in volumes if volume.claim is not None]
    for volume in in_time(kept or sorted(volumes, key=lambda each: each.capacity_milli), expired):
        if kept or _is_available(claim, volume):
            before = chosen.get(volume.name, np.zeros(len(nodes.nodes), dtype=np.bool_))
            taken = _reaches(volume, nodes, expired) & ~found & ~before
            chosen[volume.name] = before | taken
            found |= taken
        if kept:
            break
    return found


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    if volume.claim is not None and volume.claim != (claim.namespace, claim.name):
        return False
    if volume.claim_uid not in ("", claim.uid):
        return False
    return (
        volume.capacity_milli >= claim.storage_milli
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.is_being_deleted
    )


def _is_available(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Return whether an unreserved volume matches the claim."""
    if not volume.is_available or not set(claim.access_modes) <= set(volume.access_modes):
        return False
    return claim.selector is None or selector_matches(claim.selector, volume.labels)
