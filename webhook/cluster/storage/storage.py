"""The storage objects of a cluster: claims, volumes, StorageClasses and volume limits of nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.cluster.storage.csi import grouped
from webhook.cluster.storage.pv import PersistentVolume
from webhook.cluster.storage.pvc import PersistentVolumeClaim
from webhook.kube.reader import Reader

Object = Mapping[str, Any]
NamespacedName = tuple[str, str]

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """The facts of a StorageClass. A node must match one of `allowed_topologies`, if there are any.

    `is_default`: the API server gives it to claims that name no class; of several the one `created` last.
    """

    name: str
    provisioner: str
    waits_for_consumer: bool
    allowed_topologies: tuple[Term, ...]
    is_default: bool = False
    created: str = ""

    @classmethod
    def of(cls, storage_class: Object) -> "StorageClass":
        """Return the facts of `storage_class`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(storage_class.get("metadata"), "metadata")
        annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
        mode = reader.text(storage_class.get("volumeBindingMode"), "volumeBindingMode")
        facts = cls(
            name=reader.text(metadata.get("name"), "metadata.name"),
            provisioner=reader.text(storage_class.get("provisioner"), "provisioner"),
            waits_for_consumer=mode == "WaitForFirstConsumer",
            allowed_topologies=tuple(
                _topology(reader, term, path)
                for path, term in reader.objects(storage_class.get("allowedTopologies"), "allowedTopologies")
            ),
            is_default=any(annotations.get(key) == "true" for key in _IS_DEFAULT),
            created=reader.text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        )
        reader.finish()
        return facts


def _topology(reader: Reader, term: Object, path: str) -> Term:
    where = f"{path}.matchLabelExpressions"
    expressions = []
    for each, expression in reader.objects(term.get("matchLabelExpressions"), where):
        key = reader.text(expression.get("key"), f"{each}.key")
        expressions.append(Requirement(key, "In", reader.texts(expression.get("values"), f"{each}.values")))
    return Term(tuple(expressions), ())


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """The facts of a CSINode: the volume limit of each driver on the node; a driver without one has no limit.

    `drivers` are those that are installed. `migrated_plugins` are the in-tree plugins that are migrated to CSI there.
    """

    node_name: str
    by_driver: Mapping[str, int]
    migrated_plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, csi_node: Object) -> "VolumeLimits":
        """Return the facts of `csi_node`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(csi_node.get("metadata"), "metadata")
        spec = reader.object(csi_node.get("spec"), "spec")
        limits: dict[str, int] = {}
        drivers = set()
        for path, driver in reader.objects(spec.get("drivers"), "spec.drivers"):
            name = reader.text(driver.get("name"), f"{path}.name")
            drivers.add(name)
            allocatable = reader.object(driver.get("allocatable"), f"{path}.allocatable")
            if allocatable.get("count") is not None:
                limits[name] = reader.integer(allocatable.get("count"), f"{path}.allocatable.count")
        annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
        migrated = frozenset(filter(None, annotations.get(_MIGRATED_PLUGINS, "").split(",")))
        facts = cls(reader.text(metadata.get("name"), "metadata.name"), limits, migrated, frozenset(drivers))
        reader.finish()
        return facts


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage objects of a cluster by name; None if the kind is not known.

    `volumes_by_class` are the volumes that can be bound to a claim of the class.
    """

    claims: Mapping[NamespacedName, PersistentVolumeClaim] | None = None
    volumes: Mapping[str, PersistentVolume] | None = None
    classes: Mapping[str, StorageClass] | None = None
    limits: Mapping[str, VolumeLimits] | None = None
    volumes_by_class: Mapping[str, tuple[PersistentVolume, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        claims: Iterable[PersistentVolumeClaim] | None = None,
        volumes: Iterable[PersistentVolume] | None = None,
        classes: Iterable[StorageClass] | None = None,
        limits: Iterable[VolumeLimits] | None = None,
    ) -> "Storage":
        """Return the tables of these objects."""
        found = None if volumes is None else {each.name: each for each in volumes}
        return cls(
            None if claims is None else {(each.namespace, each.name): each for each in claims},
            found,
            None if classes is None else {each.name: each for each in classes},
            None if limits is None else {each.node_name: each for each in limits},
            grouped((found or {}).values(), lambda volume: volume.storage_class),
        )


NO_STORAGE = Storage()
