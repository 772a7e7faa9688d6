"""PersistentVolumeClaims: requested storage and bound volume."""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.volumes import PodReference
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_label_selector

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
FILESYSTEM = "Filesystem"


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """The facts of a PersistentVolumeClaim.

    `is_bound`: it and the volume `volume_name` are bound to each other. `selected_node` is the node that a scheduler
    selected for provisioning, or empty. `storage_milli` is in thousandths of a byte. `controller` is the pod that it
    was created for.
    """

    namespace: str
    name: str
    uid: str
    volume_name: str
    storage_class: str
    selected_node: str
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    storage_milli: int
    selector: LabelSelector | None
    controller: PodReference | None
    is_bound: bool
    is_lost: bool
    is_being_deleted: bool

    @classmethod
    @reading
    def of(cls, claim: Reader) -> "PersistentVolumeClaim":
        """Read a PersistentVolumeClaim."""
        metadata, spec = claim.object("metadata"), claim.object("spec")
        annotations = metadata.text_map("annotations")
        volume_name = spec.text("volumeName")
        return cls(
            namespace=metadata.text("namespace") or DEFAULT_NAMESPACE,
            name=metadata.text("name"),
            uid=metadata.text("uid"),
            volume_name=volume_name,
            storage_class=storage_class_of(annotations, spec),
            selected_node=annotations.get(_SELECTED_NODE, ""),
            access_modes=spec.texts("accessModes"),
            volume_mode=spec.text("volumeMode") or FILESYSTEM,
            attributes_class=spec.text("volumeAttributesClassName"),
            storage_milli=read_milli(spec.object("resources"), "requests").get("storage", 0),
            selector=read_label_selector(spec, "selector"),
            controller=PodReference.controller(metadata, kind="Pod"),
            is_bound=bool(volume_name) and _BIND_COMPLETED in annotations,
            is_lost=claim.object("status").text("phase") == "Lost",
            is_being_deleted=metadata.raw.get("deletionTimestamp") is not None,
        )


def storage_class_of(annotations: Mapping[str, str], spec: Reader) -> str:
    """Return the storage class that a claim or a volume names.

    Source: k8s.io/component-helpers/storage/volume/helpers.go, GetPersistentVolumeClaimClass
    """
    return annotations.get(_BETA_CLASS, spec.text("storageClassName"))
