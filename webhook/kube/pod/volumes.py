"""The volumes of a pod that restrict its placement."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.kube.reader import Reader

_GCE, _AWS = "gcePersistentDisk", "awsElasticBlockStore"


class Migration(NamedTuple):
    """An in-tree volume plugin, the CSI driver that it is migrated to, and the field that names the volume."""

    plugin: str
    driver: str
    handle_field: str


# In-tree types of PersistentVolumes that are migrated to CSI drivers; NodeVolumeLimits counts them for the driver.
# Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits/utils.go, isCSIMigrationOn
MIGRATIONS: Mapping[str, Migration] = {
    _AWS: Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "volumeID"),
    _GCE: Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "pdName"),
    "azureDisk": Migration("kubernetes.io/azure-disk", "disk.csi.azure.com", "diskURI"),
    "cinder": Migration("kubernetes.io/cinder", "cinder.csi.openstack.org", "volumeID"),
    "portworxVolume": Migration("kubernetes.io/portworx-volume", "pxd.portworx.com", "volumeID"),
}


class AttachedVolume(NamedTuple):
    """A volume as it counts for the volume limits of nodes: its CSI driver and its unique handle in this driver.

    `handle` is empty if the volume cannot be migrated to the driver.
    """

    driver: str
    handle: str


class PodReference(NamedTuple):
    """The pod that a claim is created for. `uid` is empty before the pod is stored."""

    name: str
    uid: str

    @classmethod
    def controller(cls, metadata: Reader, kind: str | None = None) -> "PodReference | None":
        """Return the controller, of `kind` if given, in the `metadata` of a claim, or None."""
        for owner in metadata.objects("ownerReferences"):
            if owner.raw.get("controller") is True and kind in (None, owner.raw.get("kind")):
                return cls(owner.text("name"), owner.text("uid"))
        return None


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim that a pod uses. An ephemeral claim is created for the pod after the pod is created."""

    name: str
    is_ephemeral: bool


class PodVolumes(NamedTuple):
    """The claims, in `namespace`, that a pod uses.

    `inline_disks` are the types of the pod's in-tree disks without a claim, which are not modelled. `pod` identifies
    the pod if one of the claims is ephemeral.
    """

    namespace: str = ""
    claims: tuple[ClaimUse, ...] = ()
    inline_disks: frozenset[str] = frozenset()
    pod: PodReference | None = None


NO_VOLUMES = PodVolumes()


def read_volumes(spec: Reader, namespace: str, pod: PodReference) -> PodVolumes:
    """Return the volumes of `pod`, which has `spec`, in `namespace`."""
    volumes = spec.raw.get("volumes")
    if isinstance(volumes, list) and all(isinstance(each, dict) and RESTRICTING.isdisjoint(each) for each in volumes):
        return NO_VOLUMES
    claims: list[ClaimUse] = []
    inline_disks: set[str] = set()
    for volume in spec.objects("volumes"):
        if volume.raw.get("persistentVolumeClaim") is not None:
            claims.append(ClaimUse(volume.object("persistentVolumeClaim").text("claimName"), is_ephemeral=False))
        elif volume.raw.get("ephemeral") is not None:
            claims.append(ClaimUse(f"{pod.name}-{volume.text('name')}", is_ephemeral=True))
        else:
            inline_disks |= {kind for kind in _INLINE_DISKS if volume.raw.get(kind) is not None}
    if not claims and not inline_disks:
        return NO_VOLUMES
    owner = pod if any(use.is_ephemeral for use in claims) else None
    return PodVolumes(namespace, tuple(claims), frozenset(inline_disks), owner)


# Pods of one node cannot share some of them; those of MIGRATIONS count for the limit of a CSI driver.
_INLINE_DISKS = frozenset((*MIGRATIONS, "iscsi", "rbd"))
RESTRICTING = _INLINE_DISKS | {"persistentVolumeClaim", "ephemeral"}
"""The volume types that can restrict a placement; most pods have none."""


_UNSPECIFIED = "UNSPECIFIED"
_AWS_URL = "aws://"
_ZONES_DELIMITER = "__"


def taken_over(spec: Reader, kind: str, zones: str) -> AttachedVolume:
    """Return the CSI volume that a PersistentVolume with `spec` of `kind`, one of MIGRATIONS, is migrated to.

    `zones` is its zone label.

    Source: k8s.io/csi-translation-lib/plugins, TranslateInTreePVToCSI
    """
    disk, migration = spec.object(kind), MIGRATIONS[kind]
    handle = disk.text(migration.handle_field)
    if kind == _AWS:
        handle = _aws_handle(handle)
    elif kind == _GCE:
        handle = _gce_handle(handle, zones)
    elif kind == "azureDisk" and disk.text("kind").lower() not in ("", "managed"):
        handle = ""
    return AttachedVolume(migration.driver, handle)


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
