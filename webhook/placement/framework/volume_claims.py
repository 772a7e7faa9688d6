"""Checks of a pod's PersistentVolumeClaims that several plugins share."""

from collections.abc import Iterator

from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.pvc import PersistentVolumeClaim
from webhook.cluster.storage.storage import Storage
from webhook.kube.pod.volumes import MIGRATIONS, AttachedVolume, ClaimUse, PodVolumes
from webhook.placement.pod.pod_info import PodInfo, has_volumes

_DRIVERS = {each.plugin: each.driver for each in MIGRATIONS.values()}
_PLUGINS = {each.driver: each.plugin for each in MIGRATIONS.values()}

Migrated = frozenset[str] | None
"""The in-tree plugins that are migrated to CSI on a node; None: all of them."""


class VolumePlugin:
    """A plugin that can filter or score a pod with volumes alone."""

    def concerns(self, pod: PodInfo, nodes: Snapshot) -> bool:  # noqa: ARG002 - the contract of a plugin
        """Return whether the pod has volumes that nodes can lack."""
        return has_volumes(pod)


def not_found(name: str) -> str:
    """Return the reason of a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'


def is_missing(use: ClaimUse, namespace: str, nodes: Snapshot) -> bool:
    """Return whether the claim does not exist; one of an ephemeral volume will be created, others may be left out."""
    if use.is_ephemeral or nodes.storage.claims is None or (namespace, use.name) in nodes.storage.claims:
        return False
    return not nodes.left_out.has("PersistentVolumeClaim", namespace, use.name)


def owner_error(claim: PersistentVolumeClaim | None, volumes: PodVolumes) -> str:
    """Return the reason if the claim of an ephemeral volume belongs to another pod; empty if it does not.

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
    """Yield the volumes that drivers attach for a pod with `volumes` on a node, as far as `storage` knows them."""
    for volume in volumes.attached_inline:
        if volume.handle and _is_migrated(_PLUGINS[volume.driver], migrated):
            yield volume
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
