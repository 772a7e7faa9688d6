"""PersistentVolumeClaims: requested storage and bound volume."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.volumes import PodReference
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelSelector, read_label_selector

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
FILESYSTEM = "Filesystem"

Object = Mapping[str, Any]


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
    def of(cls, claim: Object) -> "PersistentVolumeClaim":
        """Return the facts of `claim`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(claim.get("metadata"), "metadata")
        spec = reader.object(claim.get("spec"), "spec")
        status = reader.object(claim.get("status"), "status")
        annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
        requests = reader.object(spec.get("resources"), "spec.resources").get("requests")
        volume_name = reader.text(spec.get("volumeName"), "spec.volumeName")
        facts = cls(
            namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE,
            name=reader.text(metadata.get("name"), "metadata.name"),
            uid=reader.text(metadata.get("uid"), "metadata.uid"),
            volume_name=volume_name,
            storage_class=storage_class_of(reader, annotations, spec),
            selected_node=annotations.get(_SELECTED_NODE, ""),
            access_modes=reader.texts(spec.get("accessModes"), "spec.accessModes"),
            volume_mode=reader.text(spec.get("volumeMode"), "spec.volumeMode") or FILESYSTEM,
            attributes_class=reader.text(spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"),
            storage_milli=read_milli(reader, requests, "spec.resources.requests").get("storage", 0),
            selector=read_label_selector(reader, spec.get("selector"), "spec.selector"),
            controller=_controller(reader, metadata.get("ownerReferences")),
            is_bound=bool(volume_name) and _BIND_COMPLETED in annotations,
            is_lost=reader.text(status.get("phase"), "status.phase") == "Lost",
            is_being_deleted=metadata.get("deletionTimestamp") is not None,
        )
        reader.finish()
        return facts


def _controller(reader: Reader, value: Any) -> PodReference | None:
    for path, owner in reader.objects(value, "metadata.ownerReferences"):
        if owner.get("controller") is True and owner.get("kind") == "Pod":
            return PodReference(
                reader.text(owner.get("name"), f"{path}.name"), reader.text(owner.get("uid"), f"{path}.uid")
            )
    return None


def storage_class_of(reader: Reader, annotations: Mapping[str, str], spec: Object) -> str:
    """Return the storage class that a claim or a volume names.

    Source: k8s.io/component-helpers/storage/volume/helpers.go, GetPersistentVolumeClaimClass
    """
    named = reader.text(spec.get("storageClassName"), "spec.storageClassName")
    return annotations.get(_BETA_CLASS, named)
