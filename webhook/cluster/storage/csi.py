"""CSI drivers, their free storage capacity, and the volumes that they have attached to nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.kube.pod.amounts import read_milli
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_label_selector


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """The facts of a CSIDriver.

    `tracks_capacity` is true if volumes are only provisioned where the driver reports enough capacity.
    `must_be_installed` is true if pods with its volumes only run on nodes whose CSINode lists the driver.
    """

    name: str
    tracks_capacity: bool
    must_be_installed: bool = False

    @classmethod
    @reading
    def of(cls, driver: Reader) -> "CsiDriver":
        """Read a CSIDriver."""
        name, spec = driver.object("metadata").text("name"), driver.object("spec")
        return cls(name, spec.boolean("storageCapacity"), spec.boolean("preventPodSchedulingIfMissing"))


@dataclass(frozen=True, slots=True)
class CsiStorageCapacity:
    """The facts of a CSIStorageCapacity: the maximum size of a volume of a class on the nodes that `topology` selects.

    A `topology` of None selects no node. `limit_bytes` is None if the driver reports neither size nor capacity.
    `capacity_bytes` is the total free capacity, or None if the driver does not report it.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeLimit
    """

    storage_class: str
    topology: LabelSelector | None
    limit_bytes: int | None
    capacity_bytes: int | None

    @classmethod
    @reading
    def of(cls, capacity: Reader) -> "CsiStorageCapacity":
        """Read a CSIStorageCapacity."""
        free_bytes, largest_bytes = _bytes(capacity, "capacity"), _bytes(capacity, "maximumVolumeSize")
        limit_bytes = free_bytes if largest_bytes is None else largest_bytes
        topology = read_label_selector(capacity, "nodeTopology")
        return cls(capacity.text("storageClassName"), topology, limit_bytes, free_bytes)


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """The facts of a VolumeAttachment. `volume_name` is empty if the volume is not a PersistentVolume."""

    node_name: str
    driver: str
    volume_name: str

    @classmethod
    @reading
    def of(cls, attachment: Reader) -> "VolumeAttachment":
        """Read a VolumeAttachment."""
        spec = attachment.object("spec")
        volume_name = spec.object("source").text("persistentVolumeName")
        return cls(spec.text("nodeName"), spec.text("attacher"), volume_name)


@dataclass(frozen=True, slots=True)
class Csi:
    """The objects that CSI drivers update often. They are separate from `Storage`, which is kept when they change.

    `drivers` are the CSIDrivers, `capacities` the CSIStorageCapacities by class, `attachments` the VolumeAttachments by
    node, or None if the kind is not known.
    """

    drivers: Mapping[str, CsiDriver] | None = None
    capacities: Mapping[str, tuple[CsiStorageCapacity, ...]] | None = None
    attachments: Mapping[str, tuple[VolumeAttachment, ...]] | None = None


NO_CSI = Csi()


def _bytes(reader: Reader, key: str) -> int | None:
    value = reader.raw.get(key)
    if value is None:
        return None
    return whole_bytes(read_milli(Reader({key: {"storage": value}}, reader.errors), key).get("storage", 0))


def whole_bytes(milli: int) -> int:
    """Convert thousandths of a byte to bytes, rounded up as kube-scheduler rounds quantities."""
    return -(-milli // 1000)
