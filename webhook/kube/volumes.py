"""The volumes of a pod that have a say in where it can be."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

_GCE, _AWS, _ISCSI, _RBD = "gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"


class Migration(NamedTuple):
    """The plugin that a kind of volume once had, and the CSI driver that has taken it over."""

    plugin: str
    driver: str


# Kinds of volumes that CSI drivers have taken over and that NodeVolumeLimits counts as theirs.
# Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits/utils.go, isCSIMigrationOn
MIGRATIONS: Mapping[str, Migration] = {
    _AWS: Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    _GCE: Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    "azureDisk": Migration("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "cinder": Migration("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    "portworxVolume": Migration("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}


class AttachedVolume(NamedTuple):
    """A volume as nodes count it: its CSI driver, and what tells it from the driver's other volumes.

    `handle` is empty where the driver cannot take the volume over.
    """

    driver: str
    handle: str


class PodReference(NamedTuple):
    """The pod that a claim is made for; `uid` is empty before it is stored."""

    name: str
    uid: str


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

    `attached_inline` are the volumes of it that CSI drivers attach without a claim. `pod` is who it is, where one of
    the claims is ephemeral.
    """

    namespace: str = ""
    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[Disk, ...] = ()
    attached_inline: frozenset[AttachedVolume] = frozenset()
    pod: PodReference | None = None


NO_VOLUMES = PodVolumes()


def read_volumes(reader: Reader, volumes: Any, namespace: str, pod: PodReference) -> PodVolumes:
    """The `spec.volumes` of `pod` in `namespace`; what is malformed is noted with `reader`."""
    claims: list[ClaimUse] = []
    disks: list[Disk] = []
    attached_inline: set[AttachedVolume] = set()
    for path, volume in reader.objects(volumes, "spec.volumes"):
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            where = f"{path}.persistentVolumeClaim"
            name = reader.text(reader.object(claim, where).get("claimName"), f"{where}.claimName")
            claims.append(ClaimUse(name, is_ephemeral=False))
        elif volume.get("ephemeral") is not None:
            name = reader.text(volume.get("name"), f"{path}.name")
            claims.append(ClaimUse(f"{pod.name}-{name}", is_ephemeral=True))
        else:
            disks += [_disk(reader, volume, kind, path) for kind in _DISK_NAMES if volume.get(kind) is not None]
            attached_inline |= {
                taken_over(reader, kind, volume, path) for kind in MIGRATIONS if volume.get(kind) is not None
            }
    if not claims and not disks and not attached_inline:
        return NO_VOLUMES
    owner = pod if any(use.is_ephemeral for use in claims) else None
    return PodVolumes(namespace, tuple(claims), tuple(disks), frozenset(attached_inline), owner)


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


_UNSPECIFIED = "UNSPECIFIED"
_AWS_URL = "aws://"
_ZONES_DELIMITER = "__"
_HANDLE_FIELDS: Mapping[str, str] = {
    _AWS: "volumeID",
    _GCE: "pdName",
    "azureDisk": "diskURI",
    "cinder": "volumeID",
    "portworxVolume": "volumeID",
}


def taken_over(reader: Reader, kind: str, volume: Mapping[str, Any], path: str, zones: str = "") -> AttachedVolume:
    """Return what a CSI driver makes of `volume`, which is of `kind`, one of MIGRATIONS.

    `zones` is the zone label of a PersistentVolume.

    Source: k8s.io/csi-translation-lib/plugins, TranslateInTreePVToCSI and TranslateInTreeInlineVolumeToCSI
    """
    where = f"{path}.{kind}"
    disk = reader.object(volume.get(kind), where)
    field = _HANDLE_FIELDS[kind]
    handle = reader.text(disk.get(field), f"{where}.{field}")
    if kind == _AWS:
        handle = _aws_handle(handle)
    elif kind == _GCE:
        handle = _gce_handle(handle, zones)
    elif kind == "azureDisk" and reader.text(disk.get("kind"), f"{where}.kind").lower() not in ("", "managed"):
        handle = ""
    return AttachedVolume(MIGRATIONS[kind].driver, handle)


def _aws_handle(volume_id: str) -> str:
    if not volume_id.startswith(_AWS_URL):
        return volume_id
    _, _, path = volume_id.removeprefix(_AWS_URL).partition("/")
    name = path.strip("/")
    return name if name.startswith("vol-") and "/" not in name else ""


def _gce_handle(disk: str, zones: str) -> str:
    names = zones.split(_ZONES_DELIMITER)
    if len(names) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones or _UNSPECIFIED}/disks/{disk}"
    regions = {zone.rpartition("-")[0] for zone in names}
    if len(regions) > 1 or any(zone.count("-") != 2 for zone in names):
        return ""
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"
