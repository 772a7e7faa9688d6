"""PersistentVolumeClaims and PersistentVolumes: requests, bindings, and the nodes that can access a volume."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from webhook.cluster.index.node_selector import Requirement, Term, read_node_selector
from webhook.kube.names import DEFAULT_NAMESPACE, REGION_LABEL, ZONE_LABEL
from webhook.kube.pod.amounts import read_milli
from webhook.kube.pod.volumes import MIGRATIONS, AttachedVolume, PodReference, taken_over
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_label_selector

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
FILESYSTEM = "Filesystem"

_OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
_ZONES_DELIMITER = "__"
# The drivers with a topology key of their own.
_TOPOLOGY_KEYS = {
    "ebs.csi.aws.com": "topology.ebs.csi.aws.com/zone",
    "pd.csi.storage.gke.io": "topology.gke.io/zone",
    "cinder.csi.openstack.org": "topology.cinder.csi.openstack.org/zone",
}

Terms = tuple[Term, ...] | None


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """The facts of a PersistentVolumeClaim.

    `is_bound` is true if the claim and the volume `volume_name` are bound to each other. `selected_node` is the node
    that a scheduler selected for provisioning, or empty. `storage_milli` is the requested size in thousandths of a
    byte. `controller` is the pod that the claim was created for.
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


NamespacedName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """The facts of a PersistentVolume.

    `required` are the terms that its nodes must match, or None for any node. `claim` and `claim_uid` are its claimRef.
    `csi` is None if it is not a CSI volume. `source` is its in-tree type, one of MIGRATIONS, or empty. For a volume
    with a `source`, `migrated` is the volume of the CSI driver, and `translated` are the terms for nodes on which the
    volume type is migrated.
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
        zones = labels.get(_OLD_ZONE_LABEL) or labels.get(ZONE_LABEL, "")
        migrated = taken_over(spec, source, zones) if source else None
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


def translated(required: Terms, labels: Mapping[str, str], driver: str) -> Terms:
    """Translate `required`, the node affinity of a volume with `labels`, for `driver`.

    The driver's own key replaces the zone key in the affinity. If the affinity has no zones, the zones in the zone
    label are added to every term.

    Source: k8s.io/csi-translation-lib/plugins/in_tree_volume.go, translateTopologyFromInTreeToCSI
    """
    own_key = _TOPOLOGY_KEYS.get(driver)
    if own_key is None:
        return required
    terms = required or ()
    is_old = _uses_old_zone_label(terms, labels)
    zone_label = _OLD_ZONE_LABEL if is_old else ZONE_LABEL
    if _values(terms, zone_label):
        terms = _renamed(terms, zone_label, own_key)
    elif zones := {zone.strip() for zone in labels.get(zone_label, "").split(_ZONES_DELIMITER)} - {""}:
        added = Requirement(own_key, "In", tuple(sorted(zones)))
        terms = tuple(Term((*term.expressions, added), term.fields) for term in terms or (Term((), ()),))
    if is_old and _values(terms, _OLD_REGION_LABEL):
        terms = _renamed(terms, _OLD_REGION_LABEL, REGION_LABEL)
    return None if required is None and not terms else terms


def _uses_old_zone_label(terms: Iterable[Term], labels: Mapping[str, str]) -> bool:
    """Return true if the old zone label applies.

    The affinity takes precedence over labels, and the new zone label over the old.
    """
    keys = {requirement.key for term in terms for requirement in term.expressions}
    for known in (keys, labels.keys()):
        if ZONE_LABEL in known or _OLD_ZONE_LABEL in known:
            return ZONE_LABEL not in known
    return False


def _values(terms: Iterable[Term], key: str) -> bool:
    return any(each.values for term in terms for each in term.expressions if each.key == key)


def _renamed(terms: Iterable[Term], old: str, new: str) -> tuple[Term, ...]:
    return tuple(
        Term(tuple(each._replace(key=new) if each.key == old else each for each in term.expressions), term.fields)
        for term in terms
    )
