"""The storage objects of a cluster: claims, volumes, StorageClasses and volume limits of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.cluster.storage.volumes import NamespacedName, PersistentVolume, PersistentVolumeClaim
from webhook.kube.reader import Reader, reading

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """The facts of a StorageClass. A node must match one of `allowed_topologies`, if there are any.

    `is_default` is true for a default class. The API server sets the default class that was `created` last for claims
    that name no class.
    """

    name: str
    provisioner: str
    waits_for_consumer: bool
    allowed_topologies: tuple[Term, ...]
    is_default: bool = False
    created: str = ""

    @classmethod
    @reading
    def of(cls, storage_class: Reader) -> "StorageClass":
        """Read a StorageClass."""
        metadata = storage_class.object("metadata")
        annotations = metadata.text_map("annotations")
        return cls(
            name=metadata.text("name"),
            provisioner=storage_class.text("provisioner"),
            waits_for_consumer=storage_class.text("volumeBindingMode") == "WaitForFirstConsumer",
            allowed_topologies=tuple([_topology(each) for each in storage_class.objects("allowedTopologies")]),
            is_default=any(annotations.get(key) == "true" for key in _IS_DEFAULT),
            created=metadata.text("creationTimestamp"),
        )


def _topology(term: Reader) -> Term:
    expressions = term.objects("matchLabelExpressions")
    return Term(tuple([Requirement(each.text("key"), "In", each.texts("values")) for each in expressions]), ())


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """The facts of a CSINode: the volume limit of each driver on the node. A driver without an entry has no limit.

    `drivers` are the installed drivers. `migrated_plugins` are the in-tree plugins that are migrated to CSI on the
    node.
    """

    node_name: str
    by_driver: Mapping[str, int]
    migrated_plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()

    @classmethod
    @reading
    def of(cls, csi_node: Reader) -> "VolumeLimits":
        """Read a CSINode."""
        metadata = csi_node.object("metadata")
        drivers = {each.text("name"): each.object("allocatable") for each in csi_node.object("spec").objects("drivers")}
        limits = {name: each.integer("count") for name, each in drivers.items() if each.raw.get("count") is not None}
        migrated = metadata.text_map("annotations").get(_MIGRATED_PLUGINS, "").split(",")
        return cls(metadata.text("name"), limits, frozenset(filter(None, migrated)), frozenset(drivers))


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage objects of a cluster by name, or None if the kind is not known.

    `volumes_by_class` are the volumes that can be bound to a claim, by storage class.
    """

    claims: Mapping[NamespacedName, PersistentVolumeClaim] | None = None
    volumes: Mapping[str, PersistentVolume] | None = None
    classes: Mapping[str, StorageClass] | None = None
    limits: Mapping[str, VolumeLimits] | None = None
    volumes_by_class: Mapping[str, tuple[PersistentVolume, ...]] = field(default_factory=dict)


NO_STORAGE = Storage()
