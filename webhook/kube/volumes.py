"""The volumes of a pod that have a say in where it can be."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

_GCE, _AWS, _ISCSI, _RBD = "gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"
# Volumes in a pod's own spec that a CSI driver attaches, which some nodes do a limited number of times only.
_ATTACHED_INLINE = (_AWS, _GCE, "azureDisk", "azureFile", "cinder", "portworxVolume", "vsphereVolume")


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim that a pod uses; an ephemeral one is made for the pod, after it."""

    name: str
    is_ephemeral: bool


class Disk(NamedTuple):
    """A disk that pods on one node cannot share at will. `monitors`: those of a Ceph cluster."""

    kind: str
    names: tuple[str, ...]
    monitors: frozenset[str]
    is_read_only: bool

    def conflicts(self, other: "Disk") -> bool:
        """Whether pods with both cannot be on one node.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions, isVolumeConflict
        """
        if (self.kind, self.names) != (other.kind, other.names):
            return False
        if self.kind == _RBD and self.monitors.isdisjoint(other.monitors):
            return False
        return self.kind == _AWS or not (self.is_read_only and other.is_read_only)


class PodVolumes(NamedTuple):
    """The claims, in `namespace`, and the disks that a pod uses.

    `has_attached_inline`: it has volumes that a CSI driver attaches without a claim.
    """

    namespace: str = ""
    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[Disk, ...] = ()
    has_attached_inline: bool = False


NO_VOLUMES = PodVolumes()


def read_volumes(reader: Reader, volumes: Any, namespace: str, pod_name: str) -> PodVolumes:
    """The `spec.volumes` of the pod `pod_name` in `namespace`; what is malformed is noted with `reader`."""
    claims: list[ClaimUse] = []
    disks: list[Disk] = []
    has_attached_inline = False
    for path, volume in reader.objects(volumes, "spec.volumes"):
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            where = f"{path}.persistentVolumeClaim"
            name = reader.text(reader.object(claim, where).get("claimName"), f"{where}.claimName")
            claims.append(ClaimUse(name, is_ephemeral=False))
        elif volume.get("ephemeral") is not None:
            name = reader.text(volume.get("name"), f"{path}.name")
            claims.append(ClaimUse(f"{pod_name}-{name}", is_ephemeral=True))
        else:
            disks += [_disk(reader, volume, kind, path) for kind in _DISK_NAMES if volume.get(kind) is not None]
            has_attached_inline |= any(volume.get(kind) is not None for kind in _ATTACHED_INLINE)
    if not claims and not disks and not has_attached_inline:
        return NO_VOLUMES
    return PodVolumes(namespace, tuple(claims), tuple(disks), has_attached_inline)


# What tells one disk of a kind from another.
_DISK_NAMES: Mapping[str, tuple[str, ...]] = {
    _GCE: ("pdName",),
    _AWS: ("volumeID",),
    _ISCSI: ("iqn",),
    _RBD: ("pool", "image"),
}
_DEFAULTS = {"pool": "rbd"}


def _disk(reader: Reader, volume: Mapping[str, Any], kind: str, path: str) -> Disk:
    where = f"{path}.{kind}"
    disk = reader.object(volume.get(kind), where)
    names = [
        reader.text(disk.get(field), f"{where}.{field}") or _DEFAULTS.get(field, "") for field in _DISK_NAMES[kind]
    ]
    return Disk(
        kind,
        tuple(names),
        frozenset(reader.texts(disk.get("monitors"), f"{where}.monitors")),
        reader.boolean(disk.get("readOnly"), f"{where}.readOnly"),
    )
