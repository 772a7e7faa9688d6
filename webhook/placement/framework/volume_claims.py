"""The PersistentVolumeClaims of a pod: checks that several plugins share, and the volumes for unbound claims."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Snapshot
from webhook.cluster.storage.csi import CsiStorageCapacity, whole_bytes
from webhook.cluster.storage.storage import Storage
from webhook.cluster.storage.volumes import PersistentVolume, PersistentVolumeClaim
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.volumes import MIGRATIONS, AttachedVolume, ClaimUse, PodVolumes
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.interface import Failure
from webhook.placement.pod.pod_info import PodInfo, has_volumes

_DRIVERS = {each.plugin: each.driver for each in MIGRATIONS.values()}

Migrated = frozenset[str] | None
"""The in-tree plugins that are migrated to CSI on a node. None means all of them."""


class VolumePlugin:
    """A plugin that can only filter or score a pod with volumes."""

    def concerns(self, pod: PodInfo, nodes: Snapshot) -> bool:  # noqa: ARG002 - the contract of a plugin
        """Return whether the pod has volumes that some nodes may lack."""
        return has_volumes(pod)


def not_found(name: str) -> str:
    """Return the rejection reason for a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'


def is_missing(use: ClaimUse, namespace: str, nodes: Snapshot) -> bool:
    """Return whether the claim does not exist. Claims of ephemeral volumes and left-out ones do not count."""
    if use.is_ephemeral or nodes.storage.claims is None or (namespace, use.name) in nodes.storage.claims:
        return False
    return not nodes.left_out.has("PersistentVolumeClaim", namespace, use.name)


def owner_error(claim: PersistentVolumeClaim | None, volumes: PodVolumes) -> str:
    """Return the rejection reason if the claim of an ephemeral volume belongs to another pod, or "".

    A pod that is not stored yet has no UID and is identified by its name.

    Source: k8s.io/component-helpers/storage/ephemeral/ephemeral.go, VolumeIsForPod
    """
    pod = volumes.pod
    if claim is None or pod is None:
        return ""
    owner = claim.controller
    if owner is not None and (owner.uid == pod.uid if pod.uid else owner.name == pod.name):
        return ""
    namespace = volumes.namespace
    return f"PVC {namespace}/{claim.name} was not created for pod {namespace}/{pod.name} (pod is not owner)"


def attached_volumes(volumes: PodVolumes, storage: Storage, migrated: Migrated = None) -> Iterator[AttachedVolume]:
    """Yield the volumes in `storage` that drivers attach to a node for a pod with `volumes`."""
    for use in volumes.claims:
        claim = (storage.claims or {}).get((volumes.namespace, use.name))
        attached = _volume_of(claim, storage, migrated) if claim else None
        if attached is not None and attached.driver and attached.handle:
            yield attached


def _is_migrated(plugin: str, migrated: Migrated) -> bool:
    return migrated is None or plugin in migrated


def _volume_of(claim: PersistentVolumeClaim, storage: Storage, migrated: Migrated) -> AttachedVolume | None:
    volume = (storage.volumes or {}).get(claim.volume_name)
    if volume is not None:
        if volume.csi or not volume.migrated:
            return volume.csi
        return volume.migrated if _is_migrated(MIGRATIONS[volume.source].plugin, migrated) else None
    storage_class = (storage.classes or {}).get(claim.storage_class)
    provisioner = storage_class.provisioner if storage_class else ""
    if provisioner in _DRIVERS and not _is_migrated(provisioner, migrated):
        return None
    return AttachedVolume(_DRIVERS.get(provisioner, provisioner), f"claim {claim.namespace}/{claim.name}")


ERR_REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
ERR_REASON_NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"

_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


def claims_of(pod: PodInfo, storage: Storage) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims that the pod uses and that are known."""
    for use in pod.volumes.claims:
        claim = (storage.claims or {}).get((pod.volumes.namespace, use.name))
        if claim is not None:
            yield claim


def waits_for_consumer(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether the volume of the claim is chosen when a pod with it is scheduled (WaitForFirstConsumer)."""
    storage_class = (storage.classes or {}).get(claim.storage_class)
    return storage_class is not None and storage_class.waits_for_consumer


def chosen_volumes(pod: PodInfo, nodes: Snapshot, row: int) -> dict[PersistentVolumeClaim, PersistentVolume | None]:
    """Return the volume on a node for each claim of `pod` that waits for a consumer, or None if it is provisioned."""
    waiting = [each for each in claims_of(pod, nodes.storage) if not each.is_bound and not each.volume_name]
    found: dict[PersistentVolumeClaim, PersistentVolume | None] = {}
    for claim in sorted(waiting, key=lambda each: each.storage_milli):
        volumes = [each for each in nodes.storage.volumes_by_class.get(claim.storage_class, ()) if _fits(claim, each)]
        kept = [volume for volume in volumes if volume.claim is not None]
        left = kept[:1] or [each for each in volumes if _is_available(claim, each) and each not in found.values()]
        reached = [each for each in left if reaches(each, nodes, never)[row]]
        found[claim] = min(reached, key=lambda each: each.capacity_milli, default=None)
    return found


class WaitingClaims(NamedTuple):
    """Claims that wait for a consumer. For the claims in `selected`, a node is already selected for the provisioner.

    `matched` are the other claims, the smallest first, each with the size in bytes of its volume on each node. The size
    is -1 on nodes without a matching volume, where a volume is provisioned.
    """

    selected: Sequence[PersistentVolumeClaim]
    matched: Sequence[tuple[PersistentVolumeClaim, Column]]

    @classmethod
    def of(cls, claims: Iterable[PersistentVolumeClaim], nodes: Snapshot, expired: Expired) -> "WaitingClaims":
        """Return the claims among `claims` that wait for a consumer, with their volumes on `nodes`."""
        waiting = [
            claim
            for claim in claims
            if not claim.is_bound and not claim.volume_name and waits_for_consumer(claim, nodes.storage)
        ]
        chosen: dict[str, Mask] = {}
        unselected = sorted(
            (claim for claim in waiting if not claim.selected_node), key=lambda each: each.storage_milli
        )
        return cls(
            [claim for claim in waiting if claim.selected_node],
            [(claim, _matching_volume_bytes(claim, nodes, chosen, expired)) for claim in in_time(unselected, expired)],
        )

    def to_provision(self, count: int) -> Iterator[tuple[PersistentVolumeClaim, Mask]]:
        """Yield each claim with a mask, of length `count`, of the nodes on which a volume is provisioned for it."""
        yield from ((claim, np.ones(count, dtype=np.bool_)) for claim in self.selected)
        yield from ((claim, size_bytes < 0) for claim, size_bytes in self.matched)


def unbound_failures(claims: Sequence[PersistentVolumeClaim], nodes: Snapshot, expired: Expired) -> Sequence[Failure]:
    """Return the nodes on which a claim that waits for a consumer gets no volume."""
    waiting = WaitingClaims.of(claims, nodes, expired)
    if not waiting.selected and not waiting.matched:
        return ()
    bind_conflict = np.zeros(len(nodes.nodes), dtype=np.bool_)
    not_enough_space = np.zeros(len(nodes.nodes), dtype=np.bool_)
    if names := {claim.selected_node for claim in waiting.selected}:
        bind_conflict[:] = True
        if len(names) == 1 and names <= set(nodes.rows):
            bind_conflict[nodes.rows[names.pop()]] = False
    for claim, wanted in in_time(waiting.to_provision(len(nodes.nodes)), expired):
        # The first claim that cannot be provisioned gives the reason of a node.
        left = wanted & ~bind_conflict & ~not_enough_space
        provisionable = _can_provision(claim, nodes, expired)
        bind_conflict |= left & ~provisionable
        not_enough_space |= left & provisionable & ~_has_capacity(claim, nodes, expired)
    return (Failure(ERR_REASON_BIND_CONFLICT, bind_conflict), Failure(ERR_REASON_NOT_ENOUGH_SPACE, not_enough_space))


def reaches(volume: PersistentVolume, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes whose labels match the volume's node affinity.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go, CheckNodeAffinity
    """
    if volume.required is None:
        return np.ones(len(nodes.nodes), dtype=np.bool_)
    return any_matches(volume.required, nodes.labels, None, expired)


def _can_provision(claim: PersistentVolumeClaim, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes for which the claim's class provisions volumes.

    Without a provisioner, only nodes without pods count, because an administrator may add a volume.
    """
    storage_class = (nodes.storage.classes or {})[claim.storage_class]
    if storage_class.provisioner in _NO_PROVISIONER:
        return np.full(len(nodes.nodes), nodes.is_without_pods)
    if not storage_class.allowed_topologies:
        return np.ones(len(nodes.nodes), dtype=np.bool_)
    return any_matches(storage_class.allowed_topologies, nodes.labels, None, expired)


def _has_capacity(claim: PersistentVolumeClaim, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes on which the provisioner of the claim's class has enough capacity or does not track it."""
    capacities = enough_capacities(claim, nodes)
    if capacities is None or nodes.is_without_pods:
        return np.ones(len(nodes.nodes), dtype=np.bool_)
    return _selected([each.topology for each in capacities if each.topology is not None], nodes, expired)


def enough_capacities(claim: PersistentVolumeClaim, nodes: Snapshot) -> Sequence[CsiStorageCapacity] | None:
    """Return the sufficient capacities of the provisioner of the claim's class, or None if it does not track capacity.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, hasEnoughCapacity
    """
    driver = (nodes.csi.drivers or {}).get((nodes.storage.classes or {})[claim.storage_class].provisioner)
    if driver is None or not driver.tracks_capacity or nodes.csi.capacities is None or not claim.storage_milli:
        return None
    wanted = whole_bytes(claim.storage_milli)
    return [
        each
        for each in nodes.csi.capacities.get(claim.storage_class, ())
        if each.limit_bytes is not None and each.limit_bytes >= wanted and each.topology is not None
    ]


def _selected(topologies: Iterable[LabelSelector], nodes: Snapshot, expired: Expired) -> Mask:
    """Return a mask of the nodes that one of `topologies` selects.

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


def _matching_volume_bytes(
    claim: PersistentVolumeClaim, nodes: Snapshot, chosen: dict[str, Mask], expired: Expired
) -> Column:
    """Return the size in bytes of the volume for the claim on each node, or -1 if there is none.

    It is the smallest volume that fits and is not already in `chosen` on this node.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume
    """
    found = np.full(len(nodes.nodes), -1, dtype=np.int64)
    volumes = [each for each in nodes.storage.volumes_by_class.get(claim.storage_class, ()) if _fits(claim, each)]
    kept = [volume for volume in volumes if volume.claim is not None]
    for volume in in_time(kept or sorted(volumes, key=lambda each: each.capacity_milli), expired):
        if kept or _is_available(claim, volume):
            before = chosen.get(volume.name, np.zeros(len(nodes.nodes), dtype=np.bool_))
            taken = reaches(volume, nodes, expired) & (found < 0) & ~before
            chosen[volume.name] = before | taken
            found[taken] = min(whole_bytes(volume.capacity_milli), LARGEST_AMOUNT)
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
