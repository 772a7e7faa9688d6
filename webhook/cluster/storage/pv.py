"""PersistentVolumes: the claim that they are reserved for, and the nodes with access to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.cluster.storage.migration import OLD_ZONE_LABEL, Terms, translated
from webhook.cluster.storage.pvc import FILESYSTEM, storage_class_of
from webhook.kube.names import ZONE_LABEL
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.volumes import MIGRATIONS, AttachedVolume, taken_over
from webhook.kube.reader import Reader

Object = Mapping[str, Any]
NamespacedName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """The facts of a PersistentVolume.

    `required` are terms that its nodes must match; None: any node. `claim` and `claim_uid` are its claimRef. `csi` is
    None if it is not a CSI volume. `source` is its in-tree type, one of MIGRATIONS, or empty; `migrated` is then the
    volume of the CSI driver, and `translated` are the terms for nodes on which the volume type is migrated.
    """

    name: str
    labels: Mapping[str, str]
    storage_class: str
    required: tuple[Term, ...] | None
    claim: NamespacedName | None
    claim_uid: str
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    capacity_milli: int
    csi: AttachedVolume | None
    source: str
    migrated: AttachedVolume | None
    translated: Terms
    is_available: bool
    is_being_deleted: bool

    @classmethod
    def of(cls, volume: Object) -> "PersistentVolume":
        """Return the facts of `volume`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(volume.get("metadata"), "metadata")
        spec = reader.object(volume.get("spec"), "spec")
        status = reader.object(volume.get("status"), "status")
        annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
        affinity = reader.object(spec.get("nodeAffinity"), "spec.nodeAffinity")
        csi = reader.object(spec.get("csi"), "spec.csi")
        claim = reader.object(spec.get("claimRef"), "spec.claimRef")
        source = next((each for each in MIGRATIONS if spec.get(each) is not None), "")
        labels = reader.text_map(metadata.get("labels"), "metadata.labels")
        required = read_node_selector(reader, affinity.get("required"), "spec.nodeAffinity.required")
        migrated = taken_over(reader, source, spec, "spec", _zones(labels)) if source else None
        facts = cls(
            name=reader.text(metadata.get("name"), "metadata.name"),
            labels=labels,
            storage_class=storage_class_of(reader, annotations, spec),
            required=required,
            claim=_claim_reference(reader, claim) if spec.get("claimRef") is not None else None,
            claim_uid=reader.text(claim.get("uid"), "spec.claimRef.uid"),
            access_modes=reader.texts(spec.get("accessModes"), "spec.accessModes"),
            volume_mode=reader.text(spec.get("volumeMode"), "spec.volumeMode") or FILESYSTEM,
            attributes_class=reader.text(spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"),
            capacity_milli=read_milli(reader, spec.get("capacity"), "spec.capacity").get("storage", 0),
            csi=_csi(reader, csi) if spec.get("csi") is not None else None,
            source=source,
            migrated=migrated,
            translated=translated(required, labels, migrated.driver) if migrated else required,
            is_available=reader.text(status.get("phase"), "status.phase") == "Available",
            is_being_deleted=metadata.get("deletionTimestamp") is not None,
        )
        reader.finish()
        return facts


def _claim_reference(reader: Reader, claim: Object) -> NamespacedName:
    return (
        reader.text(claim.get("namespace"), "spec.claimRef.namespace"),
        reader.text(claim.get("name"), "spec.claimRef.name"),
    )


def _csi(reader: Reader, csi: Object) -> AttachedVolume:
    return AttachedVolume(
        reader.text(csi.get("driver"), "spec.csi.driver"),
        reader.text(csi.get("volumeHandle"), "spec.csi.volumeHandle"),
    )


def _zones(labels: Mapping[str, str]) -> str:
    return labels.get(OLD_ZONE_LABEL) or labels.get(ZONE_LABEL, "")
