"""PersistentVolumes: the claim that they are reserved for, and the nodes with access to them."""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.cluster.index.node_selector import Term, read_node_selector
from webhook.cluster.storage.migration import OLD_ZONE_LABEL, Terms, translated
from webhook.cluster.storage.pvc import FILESYSTEM, storage_class_of
from webhook.kube.names import ZONE_LABEL
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.volumes import MIGRATIONS, AttachedVolume, taken_over
from webhook.kube.reader import Reader, reading

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
    @reading
    def of(cls, volume: Reader) -> "PersistentVolume":
        """Read a PersistentVolume."""
        metadata, spec = volume.object("metadata"), volume.object("spec")
        annotations, labels = metadata.text_map("annotations"), metadata.text_map("labels")
        csi, claim = spec.object("csi"), spec.object("claimRef")
        source = next((each for each in MIGRATIONS if spec.raw.get(each) is not None), "")
        required = read_node_selector(spec.object("nodeAffinity"), "required")
        migrated = taken_over(spec, source, _zones(labels)) if source else None
        has_csi, has_claim = (spec.raw.get(each) is not None for each in ("csi", "claimRef"))
        return cls(
            name=metadata.text("name"),
            labels=labels,
            storage_class=storage_class_of(annotations, spec),
            required=required,
            claim=(claim.text("namespace"), claim.text("name")) if has_claim else None,
            claim_uid=claim.text("uid"),
            access_modes=spec.texts("accessModes"),
            volume_mode=spec.text("volumeMode") or FILESYSTEM,
            attributes_class=spec.text("volumeAttributesClassName"),
            capacity_milli=read_milli(spec, "capacity").get("storage", 0),
            csi=AttachedVolume(csi.text("driver"), csi.text("volumeHandle")) if has_csi else None,
            source=source,
            migrated=migrated,
            translated=translated(required, labels, migrated.driver) if migrated else required,
            is_available=volume.object("status").text("phase") == "Available",
            is_being_deleted=metadata.raw.get("deletionTimestamp") is not None,
        )


def _zones(labels: Mapping[str, str]) -> str:
    return labels.get(OLD_ZONE_LABEL) or labels.get(ZONE_LABEL, "")
