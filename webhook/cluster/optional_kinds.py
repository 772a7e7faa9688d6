"""The kinds besides nodes, pods and namespaces: how to read their objects and which snapshot field holds them.

Each of these kinds is optional in a snapshot. The scorer makes no assumptions about a kind that is not known.
BATCH_KINDS are the CRDs of batch schedulers, which most clusters do not serve. Their names include the API group,
because several schedulers have a Queue and a PodGroup.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from webhook.cluster.batch.kueue import ClusterQueue, KueueObjects, LocalQueue, ResourceFlavor, Workload
from webhook.cluster.batch.queues import KaiObjects, KaiQueue, PodGroup, PodGroups, VolcanoQueue
from webhook.cluster.batch.topologies import Topology
from webhook.cluster.dra.device import DeviceTaintRule
from webhook.cluster.dra.device_class import DEVICES_V1BETA1, DeviceClass
from webhook.cluster.dra.devices import Devices
from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.dra.resource_slice import ResourceSlice
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND, DisruptionBudget
from webhook.cluster.objects.hyper_nodes import HyperNode, HyperNodes, VolcanoObjects
from webhook.cluster.objects.limit_range import LimitRange
from webhook.cluster.objects.priority_class import PRIORITY_CLASS_KIND, PriorityClass
from webhook.cluster.objects.resource_quota import ResourceQuota
from webhook.cluster.objects.runtime_class import RuntimeClass, RuntimeClasses
from webhook.cluster.objects.selecting_objects import SelectingObject, SelectingObjects
from webhook.cluster.storage.csi import Csi, CsiDriver, CsiStorageCapacity, VolumeAttachment
from webhook.cluster.storage.storage import Storage, StorageClass, VolumeLimits
from webhook.cluster.storage.volumes import PersistentVolume, PersistentVolumeClaim

Facts: TypeAlias = object
"""The facts of an object of EVERY_OPTIONAL_KIND."""
FactsByKind = Mapping[str, Iterable[Any]]
"""The facts of every object of each known kind; a kind that is absent is not known."""


class OptionalKind(NamedTuple):
    """A kind: its API version and plural, the function that reads one object, and its field of a snapshot.

    `is_everywhere` is true if every API server of a modelled release serves it.
    """

    api_version: str
    plural: str
    read: Callable[[Mapping[str, Any]], Facts]
    field: str
    is_everywhere: bool = True


RUNTIME_CLASS_KIND, LIMIT_RANGE_KIND = "RuntimeClass", "LimitRange"
OPTIONAL_KINDS: Mapping[str, OptionalKind] = {
    "Service": OptionalKind("v1", "services", SelectingObject.of, "workloads"),
    "ReplicationController": OptionalKind("v1", "replicationcontrollers", SelectingObject.of, "workloads"),
    "ReplicaSet": OptionalKind("apps/v1", "replicasets", SelectingObject.of, "workloads"),
    "StatefulSet": OptionalKind("apps/v1", "statefulsets", SelectingObject.of, "workloads"),
    "PersistentVolumeClaim": OptionalKind("v1", "persistentvolumeclaims", PersistentVolumeClaim.of, "storage"),
    "PersistentVolume": OptionalKind("v1", "persistentvolumes", PersistentVolume.of, "storage"),
    "StorageClass": OptionalKind("storage.k8s.io/v1", "storageclasses", StorageClass.of, "storage"),
    "CSINode": OptionalKind("storage.k8s.io/v1", "csinodes", VolumeLimits.of, "storage"),
    "CSIDriver": OptionalKind("storage.k8s.io/v1", "csidrivers", CsiDriver.of, "csi"),
    "CSIStorageCapacity": OptionalKind("storage.k8s.io/v1", "csistoragecapacities", CsiStorageCapacity.of, "csi"),
    "VolumeAttachment": OptionalKind("storage.k8s.io/v1", "volumeattachments", VolumeAttachment.of, "csi"),
    "DeviceClass": OptionalKind("resource.k8s.io/v1", "deviceclasses", DeviceClass.of, "devices"),
    "ResourceClaim": OptionalKind("resource.k8s.io/v1", "resourceclaims", ResourceClaim.of, "devices"),
    "ResourceClaimTemplate": OptionalKind("resource.k8s.io/v1", "resourceclaimtemplates", ResourceClaim.of, "devices"),
    "ResourceSlice": OptionalKind("resource.k8s.io/v1", "resourceslices", ResourceSlice.of, "devices"),
    # Served since 1.37.
    "DeviceTaintRule": OptionalKind(
        "resource.k8s.io/v1", "devicetaintrules", DeviceTaintRule.of, "devices", is_everywhere=False
    ),
    PRIORITY_CLASS_KIND: OptionalKind("scheduling.k8s.io/v1", "priorityclasses", PriorityClass.of, "priority_classes"),
    "ResourceQuota": OptionalKind("v1", "resourcequotas", ResourceQuota.of, "full_quotas"),
    RUNTIME_CLASS_KIND: OptionalKind("node.k8s.io/v1", "runtimeclasses", RuntimeClass.of, "runtime_classes"),
    LIMIT_RANGE_KIND: OptionalKind("v1", "limitranges", LimitRange.of, "limit_ranges"),
    DISRUPTION_BUDGET_KIND: OptionalKind(
        "policy/v1", "poddisruptionbudgets", DisruptionBudget.of, "disruption_budgets"
    ),
}

_VOLCANO, _KAI, _KUEUE = "scheduling.volcano.sh", "scheduling.run.ai", "kueue.x-k8s.io"
_VOLCANO_TOPOLOGY, _KAI_TOPOLOGY = "topology.volcano.sh", "kai.scheduler"
_COSCHEDULING, _NATIVE = "scheduling.x-k8s.io", "scheduling.k8s.io"
BATCH_KINDS: Mapping[str, OptionalKind] = {
    f"Queue.{_VOLCANO}": OptionalKind(f"{_VOLCANO}/v1beta1", "queues", VolcanoQueue.of, "volcano"),
    f"PodGroup.{_VOLCANO}": OptionalKind(f"{_VOLCANO}/v1beta1", "podgroups", PodGroup.of_volcano, "volcano"),
    f"HyperNode.{_VOLCANO_TOPOLOGY}": OptionalKind(
        f"{_VOLCANO_TOPOLOGY}/v1alpha1", "hypernodes", HyperNode.of, "volcano"
    ),
    f"Queue.{_KAI}": OptionalKind(f"{_KAI}/v2", "queues", KaiQueue.of, "kai"),
    f"PodGroup.{_KAI}": OptionalKind(f"{_KAI}/v2alpha2", "podgroups", PodGroup.of_kai, "kai"),
    f"Topology.{_KAI_TOPOLOGY}": OptionalKind(f"{_KAI_TOPOLOGY}/v1alpha1", "topologies", Topology.of, "kai"),
    f"LocalQueue.{_KUEUE}": OptionalKind(f"{_KUEUE}/v1beta1", "localqueues", LocalQueue.of, "kueue"),
    f"ClusterQueue.{_KUEUE}": OptionalKind(f"{_KUEUE}/v1beta1", "clusterqueues", ClusterQueue.of, "kueue"),
    f"ResourceFlavor.{_KUEUE}": OptionalKind(f"{_KUEUE}/v1beta1", "resourceflavors", ResourceFlavor.of, "kueue"),
    f"Topology.{_KUEUE}": OptionalKind(f"{_KUEUE}/v1beta1", "topologies", Topology.of, "kueue"),
    f"Workload.{_KUEUE}": OptionalKind(f"{_KUEUE}/v1beta1", "workloads", Workload.of, "kueue"),
    f"PodGroup.{_COSCHEDULING}": OptionalKind(f"{_COSCHEDULING}/v1alpha1", "podgroups", PodGroup.of, "pod_groups"),
    # Served since 1.37, and only with the feature gate GenericWorkload.
    f"PodGroup.{_NATIVE}": OptionalKind(f"{_NATIVE}/v1beta1", "podgroups", PodGroup.of_native, "pod_groups"),
}
EVERY_OPTIONAL_KIND: Mapping[str, OptionalKind] = {**OPTIONAL_KINDS, **BATCH_KINDS}
_DEVICE_VERSIONS = dict.fromkeys((DEVICES_V1BETA1, "resource.k8s.io/v1beta2"), "resource.k8s.io/v1")
WORKLOAD_KINDS = frozenset([kind for kind, row in OPTIONAL_KINDS.items() if row.field == "workloads"])


def optional_kind_named(api_version: str, kind: str) -> str | None:
    """Return the name of `kind` in EVERY_OPTIONAL_KIND, or None if it is not an optional kind.

    Any version of a batch kind is accepted, because `kubectl get` prints the preferred version of a CRD. Beta versions
    of device kinds are accepted, because manifests can have them.
    """
    row = OPTIONAL_KINDS.get(kind)
    if row is not None and row.api_version == _DEVICE_VERSIONS.get(api_version, api_version):
        return kind
    name = f"{kind}.{api_version.partition('/')[0]}"
    return name if name in BATCH_KINDS else None


def read_optional(kind: str, content: Mapping[str, Any]) -> Facts:
    """Return the facts of `content`, an object of `kind`, which items of a list do not name.

    Raises:
        InvalidInput: a field that is read is malformed; holds every error.
    """
    row = EVERY_OPTIONAL_KIND[kind]
    return row.read({**content, "apiVersion": row.api_version, "kind": kind})


def snapshot_fields(found: FactsByKind, fields: Iterable[str] | None = None) -> dict[str, Any]:
    """Return `fields` of a snapshot, or all fields of optional kinds, with the objects in `found`."""
    return {field: _MAKERS[field](found) for field in (_MAKERS if fields is None else fields)}


def _by_name(found: FactsByKind, kind: str) -> dict[str, Any] | None:
    return {each.name: each for each in found[kind]} if kind in found else None


def _by_full_name(found: FactsByKind, kind: str) -> dict[tuple[str, str], Any] | None:
    return {(each.namespace, each.name): each for each in found[kind]} if kind in found else None


def _grouped(facts: Iterable[Any], name_of: Callable[[Any], str]) -> dict[str, tuple[Any, ...]]:
    groups: dict[str, list[Any]] = {}
    for each in facts:
        groups.setdefault(name_of(each), []).append(each)
    return {name: tuple(group) for name, group in groups.items()}


def _workloads(found: FactsByKind) -> SelectingObjects:
    objects = (each for kind in WORKLOAD_KINDS for each in found.get(kind, ()))
    return SelectingObjects.of(objects, knows_services="Service" in found)


def _storage(found: FactsByKind) -> Storage:
    volumes, limits = _by_name(found, "PersistentVolume"), found.get("CSINode")
    return Storage(
        _by_full_name(found, "PersistentVolumeClaim"),
        volumes,
        _by_name(found, "StorageClass"),
        None if limits is None else {each.node_name: each for each in limits},
        _grouped((volumes or {}).values(), attrgetter("storage_class")),
    )


def _csi(found: FactsByKind) -> Csi:
    capacities, attachments = found.get("CSIStorageCapacity"), found.get("VolumeAttachment")
    return Csi(
        _by_name(found, "CSIDriver"),
        None if capacities is None else _grouped(capacities, attrgetter("storage_class")),
        None if attachments is None else _grouped(attachments, attrgetter("node_name")),
    )


def _devices(found: FactsByKind) -> Devices:
    return Devices.of(
        _by_name(found, "DeviceClass"),
        _by_full_name(found, "ResourceClaim"),
        _by_full_name(found, "ResourceClaimTemplate"),
        found.get("ResourceSlice"),
        found.get("DeviceTaintRule"),
    )


def _full_quotas(found: FactsByKind) -> dict[str, str]:
    denying = sorted(each for each in found.get("ResourceQuota", ()) if each.denies_cross_namespace)
    return {each.namespace: each.name for each in reversed(denying)}


def _volcano(found: FactsByKind) -> VolcanoObjects:
    hyper_nodes = _by_name(found, f"HyperNode.{_VOLCANO_TOPOLOGY}")
    return VolcanoObjects(
        _by_name(found, f"Queue.{_VOLCANO}"),
        _by_full_name(found, f"PodGroup.{_VOLCANO}"),
        None if hyper_nodes is None else HyperNodes(hyper_nodes),
    )


def _kai(found: FactsByKind) -> KaiObjects:
    queues = _by_name(found, f"Queue.{_KAI}")
    parents = frozenset(each.parent for each in (queues or {}).values() if each.parent)
    return KaiObjects(
        queues, _by_full_name(found, f"PodGroup.{_KAI}"), parents, _by_name(found, f"Topology.{_KAI_TOPOLOGY}")
    )


_MAKERS: Mapping[str, Callable[[FactsByKind], Any]] = {
    "workloads": _workloads,
    "storage": _storage,
    "csi": _csi,
    "devices": _devices,
    "priority_classes": lambda found: _by_name(found, PRIORITY_CLASS_KIND) or {},
    "full_quotas": _full_quotas,
    "runtime_classes": lambda found: RuntimeClasses(
        _by_name(found, RUNTIME_CLASS_KIND) or {}, are_known=RUNTIME_CLASS_KIND in found
    ),
    "limit_ranges": lambda found: _grouped(found.get(LIMIT_RANGE_KIND, ()), attrgetter("namespace")),
    "disruption_budgets": lambda found: (
        tuple(found[DISRUPTION_BUDGET_KIND]) if DISRUPTION_BUDGET_KIND in found else None
    ),
    "volcano": _volcano,
    "kai": _kai,
    "kueue": lambda found: KueueObjects(
        _by_full_name(found, f"LocalQueue.{_KUEUE}"),
        _by_name(found, f"ClusterQueue.{_KUEUE}"),
        _by_name(found, f"ResourceFlavor.{_KUEUE}"),
        _by_name(found, f"Topology.{_KUEUE}"),
        _by_full_name(found, f"Workload.{_KUEUE}"),
    ),
    "pod_groups": lambda found: PodGroups(
        _by_full_name(found, f"PodGroup.{_COSCHEDULING}"), _by_full_name(found, f"PodGroup.{_NATIVE}")
    ),
}
