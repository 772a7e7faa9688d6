"""CSI drivers, the capacity that they have left, and the volumes that they have attached to nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.kube.amounts import read_milli
from webhook.kube.label_selector import LabelSelector, read_label_selector
from webhook.kube.reader import Reader

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Driver:
    """The facts of a CSIDriver. `tracks_capacity`: volumes are made only where it reports enough capacity."""

    name: str
    tracks_capacity: bool

    @classmethod
    def of(cls, driver: Object) -> "Driver":
        """Return the facts of `driver`, a raw object of the API.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(driver.get("metadata"), "metadata")
        spec = reader.object(driver.get("spec"), "spec")
        facts = cls(
            reader.text(metadata.get("name"), "metadata.name"),
            reader.boolean(spec.get("storageCapacity"), "spec.storageCapacity"),
        )
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """The facts of a CSIStorageCapacity: how large a volume of a class can be on the nodes that `topology` selects.

    `topology` None selects no node. `limit_bytes` is None where the driver reports neither size nor capacity.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeLimit
    """

    storage_class: str
    topology: LabelSelector | None
    limit_bytes: int | None

    @classmethod
    def of(cls, capacity: Object) -> "StorageCapacity":
        """Return the facts of `capacity`, a raw object of the API.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        limit = "capacity" if capacity.get("maximumVolumeSize") is None else "maximumVolumeSize"
        amounts = {} if capacity.get(limit) is None else read_milli(reader, {"storage": capacity[limit]}, limit)
        facts = cls(
            reader.text(capacity.get("storageClassName"), "storageClassName"),
            read_label_selector(reader, capacity.get("nodeTopology"), "nodeTopology"),
            whole_bytes(amounts["storage"]) if amounts else None,
        )
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class Attachment:
    """The facts of a VolumeAttachment. `volume_name` is empty where it is of no PersistentVolume."""

    node_name: str
    driver: str
    volume_name: str

    @classmethod
    def of(cls, attachment: Object) -> "Attachment":
        """Return the facts of `attachment`, a raw object of the API.

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


def whole_bytes(milli: int) -> int:
    """Return thousandths of a byte as bytes, rounded up as kube-scheduler rounds quantities."""
    return -(-milli // 1000)
