"""CSI drivers, their free storage capacity, and the volumes that they have attached to nodes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from webhook.kube.pod.amounts import read_milli
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelSelector, read_label_selector

Object = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """The facts of a CSIDriver.

    `tracks_capacity`: volumes are provisioned only where it reports enough capacity. `must_be_installed`: pods with its
    volumes run only on nodes whose CSINode lists it.
    """

    name: str
    tracks_capacity: bool
    must_be_installed: bool = False

    @classmethod
    def of(cls, driver: Object) -> "CsiDriver":
        """Return the facts of `driver`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(driver.get("metadata"), "metadata")
        spec = reader.object(driver.get("spec"), "spec")
        facts = cls(
            reader.text(metadata.get("name"), "metadata.name"),
            reader.boolean(spec.get("storageCapacity"), "spec.storageCapacity"),
            reader.boolean(spec.get("preventPodSchedulingIfMissing"), "spec.preventPodSchedulingIfMissing"),
        )
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class CsiStorageCapacity:
    """The facts of a CSIStorageCapacity: the maximum size of a volume of a class on the nodes that `topology` selects.

    `topology` None selects no node. `limit_bytes` is None if the driver reports neither size nor capacity.
    `capacity_bytes` is what it has free for all volumes, None if it does not report that.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeLimit
    """

    storage_class: str
    topology: LabelSelector | None
    limit_bytes: int | None
    capacity_bytes: int | None

    @classmethod
    def of(cls, capacity: Object) -> "CsiStorageCapacity":
        """Return the facts of `capacity`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        free_bytes = _bytes(reader, capacity.get("capacity"), "capacity")
        largest_bytes = _bytes(reader, capacity.get("maximumVolumeSize"), "maximumVolumeSize")
        facts = cls(
            reader.text(capacity.get("storageClassName"), "storageClassName"),
            read_label_selector(reader, capacity.get("nodeTopology"), "nodeTopology"),
            free_bytes if largest_bytes is None else largest_bytes,
            free_bytes,
        )
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """The facts of a VolumeAttachment. `volume_name` is empty if it is not of a PersistentVolume."""

    node_name: str
    driver: str
    volume_name: str

    @classmethod
    def of(cls, attachment: Object) -> "VolumeAttachment":
        """Return the facts of `attachment`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        spec = reader.object(attachment.get("spec"), "spec")
        source = reader.object(spec.get("source"), "spec.source")
        facts = cls(
            reader.text(spec.get("nodeName"), "spec.nodeName"),
            reader.text(spec.get("attacher"), "spec.attacher"),
            reader.text(source.get("persistentVolumeName"), "spec.source.persistentVolumeName"),
        )
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class Csi:
    """The objects that CSI drivers update often. They are apart from `Storage`, which stays when these change.

    `drivers` are the CSIDrivers, `capacities` the CSIStorageCapacities by class, `attachments` the VolumeAttachments
    by node; None if the kind is not known.
    """

    drivers: Mapping[str, CsiDriver] | None = None
    capacities: Mapping[str, tuple[CsiStorageCapacity, ...]] | None = None
    attachments: Mapping[str, tuple[VolumeAttachment, ...]] | None = None

    @classmethod
    def of(
        cls,
        drivers: Iterable[CsiDriver] | None = None,
        capacities: Iterable[CsiStorageCapacity] | None = None,
        attachments: Iterable[VolumeAttachment] | None = None,
    ) -> "Csi":
        """Return the tables of these objects."""
        return cls(
            None if drivers is None else {each.name: each for each in drivers},
            None if capacities is None else grouped(capacities, lambda capacity: capacity.storage_class),
            None if attachments is None else grouped(attachments, lambda attachment: attachment.node_name),
        )


NO_CSI = Csi()


def grouped(facts: Iterable[T], name_of: Callable[[T], str]) -> dict[str, tuple[T, ...]]:
    """Return `facts` grouped by name."""
    groups: dict[str, list[T]] = {}
    for each in facts:
        groups.setdefault(name_of(each), []).append(each)
    return {name: tuple(group) for name, group in groups.items()}


def _bytes(reader: Reader, value: Any, path: str) -> int | None:
    return None if value is None else whole_bytes(read_milli(reader, {"storage": value}, path).get("storage", 0))


def whole_bytes(milli: int) -> int:
    """Convert thousandths of a byte to bytes, rounded up as kube-scheduler rounds quantities."""
    return -(-milli // 1000)
