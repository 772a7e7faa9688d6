"""An immutable snapshot of the cluster, with nodes as rows in the order of their names."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from operator import is_not
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.batch.kueue import NO_KUEUE, KueueObjects
from webhook.cluster.batch.queues import NO_KAI, NO_POD_GROUPS, KaiObjects, PodGroups
from webhook.cluster.dra.devices import NO_DEVICES, Devices
from webhook.cluster.index.images import Images
from webhook.cluster.index.labels import LabelColumns, Mask, TaintClasses
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.left_out import NOTHING_LEFT_OUT, LeftOut
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.objects.hyper_nodes import NO_VOLCANO, VolcanoObjects
from webhook.cluster.objects.limit_range import LimitRange
from webhook.cluster.objects.priority_class import PRIORITY_CLASS_KIND, PriorityClass, priority_class_named
from webhook.cluster.objects.runtime_class import NO_RUNTIME_CLASSES, RuntimeClasses
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.objects.selecting_objects import NO_WORKLOADS, SelectingObjects
from webhook.cluster.pods.nominated_pods import NO_NOMINATED_PODS, NominatedPods
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.row_log import RowLog
from webhook.cluster.storage.csi import NO_CSI, Csi
from webhook.cluster.storage.storage import NO_STORAGE, Storage
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.pod.ports import HostPort
from webhook.kube.reader import Reader, reading
from webhook.kube.release import ASSUMED, Release

Column = NDArray[np.int64]
Rows = NDArray[np.intp]

# The cap of amounts (72 PB): scores multiply amounts by 100, and the product must fit into an int64.
LARGEST_AMOUNT = 2**56


@dataclass(frozen=True, slots=True)
class Namespace:
    """The facts of a Namespace that placement needs, and its annotations, which are defaults of its pods."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @classmethod
    @reading
    def of(cls, namespace: Reader) -> "Namespace":
        """Read a Namespace."""
        metadata = namespace.object("metadata")
        return cls(metadata.text_map("labels"), metadata.text_map("annotations"))


@dataclass(frozen=True, slots=True)
class Load:
    """The resources that running pods use, in columns over nodes.

    `non_zero_requested` are the requests of cpu and memory, including a default for each container without a request.
    `host_ports` are the used ports by protocol and port, each with the row of its node.
    """

    requested: dict[str, Column]
    non_zero_requested: dict[str, Column]
    pods: Column
    host_ports: Mapping[tuple[str, int], tuple[tuple[HostPort, int], ...]]
    sums: dict[str, int] = field(default_factory=dict, init=False)
    """The sums of the columns of `requested` that were asked for."""

    @classmethod
    def of(cls, nodes: tuple[NodeInfo, ...]) -> "Load":
        """Return the load of `nodes`."""
        host_ports: dict[tuple[str, int], list[tuple[HostPort, int]]] = {}
        for row, info in enumerate(nodes):
            for port in {port for pod in info.pods for port in pod.rare.host_ports}:
                host_ports.setdefault((port.protocol, port.port), []).append((port, row))
        counted = {
            CPU: _column([info.non_zero_milli_cpu for info in nodes]),
            MEMORY: _column([info.non_zero_memory_bytes for info in nodes]),
        }
        return cls(
            _columns([info.requested for info in nodes]),
            counted,
            _column([len(info.pods) for info in nodes]),
            {key: tuple(taken) for key, taken in host_ports.items()},
        )


@dataclass(slots=True, eq=False, kw_only=True)
class ClusterObjects:
    """The parts of a snapshot other than nodes and their pods. The field of an unknown optional kind has its default.

    `full_quotas` has, by namespace, the name of a ResourceQuota that denies pods with pod affinity across namespaces.
    `limit_ranges` are keyed by namespace. `disruption_budgets` are None if not known. `left_out` are objects of known
    kinds that the snapshot lacks. `release` is that of the API server; kube-scheduler is assumed to have the same.
    `nominated` are the pending pods with a nominated node; they use no resources yet. `pending` are the pods that are
    not bound, in order of arrival. `is_without_pods` is true if pods are left out. `plugins` are optional admission
    plugins that the API server is assumed to run.
    """

    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    workloads: SelectingObjects = NO_WORKLOADS
    storage: Storage = NO_STORAGE
    csi: Csi = NO_CSI
    devices: Devices = NO_DEVICES
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    full_quotas: Mapping[str, str] = field(default_factory=dict)
    runtime_classes: RuntimeClasses = NO_RUNTIME_CLASSES
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = field(default_factory=dict)
    disruption_budgets: tuple[DisruptionBudget, ...] | None = None
    volcano: VolcanoObjects = NO_VOLCANO
    kai: KaiObjects = NO_KAI
    kueue: KueueObjects = NO_KUEUE
    pod_groups: PodGroups = NO_POD_GROUPS
    left_out: LeftOut = NOTHING_LEFT_OUT
    scheduler_evidence: SchedulerEvidence | None = None
    release: Release = ASSUMED
    nominated: NominatedPods = NO_NOMINATED_PODS
    pending: Mapping[PodKey, PendingPod] = field(default_factory=dict)
    is_without_pods: bool = False
    plugins: frozenset[str] = frozenset()


_NOT_OF_NODES = tuple(each.name for each in fields(ClusterObjects))


@dataclass(slots=True, eq=False, kw_only=True, weakref_slot=True)
class Snapshot(ClusterObjects):
    """The cluster at one moment. It is immutable; a later moment is another snapshot with another generation.

    The exception is the snapshot of a `WorkingSnapshot`: it is for one thread, and `log` contains its changes.

    Row n of every column is `nodes[n]`. Amounts are in thousandths of a core for cpu, in bytes or units for other
    resources. `assumed` are the nominated pods that this snapshot shows as running, each with the row of its node.
    """

    generation: int
    nodes: Sequence[NodeInfo]
    rows: Mapping[str, int]
    labels: LabelColumns
    taints: TaintClasses
    unschedulable: Mask
    allowed_pods: Column
    load: Load
    images: Images
    pods: RunningPods
    assumed: tuple[tuple[int, RunningPod], ...] = ()
    allocatable_columns: Mapping[str, Column]
    _zeros: Column
    # Those of another snapshot say nothing about this one, so `replace` must not copy them.
    _log: RowLog | None = field(default=None, init=False)
    # The snapshot that this one was derived from, and the rows of other nodes.
    _origin: "ref[Snapshot] | None" = field(default=None, init=False)
    _rows_since_origin: Collection[int] = field(default=(), init=False)

    @classmethod
    def of(
        cls,
        nodes: Iterable[NodeInfo],
        namespaces: Mapping[str, Namespace] | None = None,
        generation: int = 0,
        **objects: Any,
    ) -> "Snapshot":
        """Return the snapshot of `nodes`, whose names are distinct, `namespaces` by name, and other ClusterObjects."""
        infos = tuple(sorted(nodes, key=lambda info: info.node.name))
        return cls(
            namespaces=namespaces or {},
            **objects,
            generation=generation,
            nodes=infos,
            rows={info.node.name: row for row, info in enumerate(infos)},
            labels=LabelColumns(info.node.labels for info in infos),
            taints=TaintClasses.of(info.node.taints for info in infos),
            unschedulable=np.array([info.node.unschedulable for info in infos], dtype=np.bool_),
            allowed_pods=_column([info.node.allowed_pods for info in infos]),
            load=Load.of(infos),
            images=Images([info.node.images for info in infos]),
            pods=RunningPods.of(infos),
            allocatable_columns=_columns([info.node.allocatable for info in infos]),
            _zeros=_column([0] * len(infos)),
        )

    @property
    def log(self) -> RowLog:
        """Return the log of the changes of the rows."""
        if self._log is None:
            self._log = RowLog()
        return self._log

    @property
    def state(self) -> tuple[RowLog, int]:
        """Return the log and its position. They are equal to earlier values if the snapshot has not changed since."""
        log = self.log
        return log, log.position

    def take_log(self, before: "Snapshot") -> None:
        """Continue the log of `before`, an earlier state of this snapshot."""
        self._log, before._log = before.log, None  # noqa: SLF001 - of its own class

    def note_origin(self, origin: "Snapshot", rows: Collection[int]) -> None:
        """Record that the snapshot has the same nodes as `origin`, except those in `rows`."""
        self._origin, self._rows_since_origin = ref(origin), rows

    def changed_rows(self, before: "Snapshot") -> Iterable[int]:
        """Return the rows whose nodes are not the same objects as in `before`, which must have as many nodes."""
        if self._origin is not None and self._origin() is before:
            return self._rows_since_origin
        return compress(range(len(self.nodes)), map(is_not, before.nodes, self.nodes))

    def without_pods(self) -> "Snapshot":
        """Return the snapshot without running and nominated pods."""
        none = Load({}, {CPU: self._zeros, MEMORY: self._zeros}, self._zeros, {})
        pods = RunningPods.of(())
        return replace(self, load=none, pods=pods, nominated=NO_NOMINATED_PODS, assumed=(), is_without_pods=True)

    def with_reserved_pods(self) -> "Snapshot":
        """Return the snapshot without running pods, but with the pods for which room is reserved on a node."""
        reserved = [(info.node, [pod for pod in info.pods if pod.is_reserved]) for info in self.nodes]
        empty = self.without_pods()
        if not any(pods for _, pods in reserved):
            return empty
        shown = empty.with_nodes((NodeInfo.of(node, pods) for node, pods in reserved), self.generation)
        return replace(shown, is_without_pods=True)

    def with_nodes(self, nodes: Iterable[NodeInfo], generation: int) -> "Snapshot":
        """Return the snapshot with exactly these `nodes` and their pods."""
        return Snapshot.of(nodes, generation=generation, **{name: getattr(self, name) for name in _NOT_OF_NODES})

    def with_other_nodes(self, nodes: Iterable[NodeInfo]) -> "Snapshot":
        """Return the snapshot with exactly these `nodes`, without pods; their devices are not known."""
        changed = self.with_nodes(nodes, self.generation)
        devices = replace(self.devices, slices=None, answers={})
        return replace(changed, nominated=NO_NOMINATED_PODS, is_without_pods=True, devices=devices)

    def lacks_priority_class(self, name: str) -> bool:
        """Return whether there is no PriorityClass `name`; false if the classes are not known."""
        return priority_class_named(name, self.priority_classes) is None and self.knows_priority_classes

    @property
    def knows_priority_classes(self) -> bool:
        """Return whether all PriorityClasses are known. Every cluster has some, so an empty view means not known."""
        has_some = any(not each.is_planned for each in self.priority_classes.values())
        return has_some and not self.left_out.has_any(PRIORITY_CLASS_KIND)

    def has_pod_of(self, scheduler: str) -> bool:
        """Return whether a running pod names `scheduler`, which must not be the default scheduler."""
        return any(scheduler in info.schedulers for info in self.nodes)

    def allocatable(self, resource: str) -> Column:
        """Return the allocatable amount of `resource` on each node."""
        return self.allocatable_columns.get(resource, self._zeros)

    def requested(self, resource: str) -> Column:
        """Return the sum of the pods' requests of `resource` on each node."""
        return self.load.requested.get(resource, self._zeros)

    def requested_in_all(self, resource: str) -> int:
        """Return the sum of the pods' requests of `resource` on all nodes."""
        found = self.load.sums.get(resource)
        if found is None:
            found = self.load.sums[resource] = int(self.requested(resource).sum())
        return found

    def non_zero_requested(self, resource: str) -> Column:
        """Return the sum as `requested`, including a default for each container without a request of cpu or memory."""
        column = self.load.non_zero_requested.get(resource)
        return self.requested(resource) if column is None else column

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Return the annotations of the namespace, or none if it is not known."""
        namespace = self.namespaces.get(name)
        return namespace.annotations if namespace else {}

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of the namespace, or none if it is not known."""
        namespace = self.namespaces.get(name)
        return namespace.labels if namespace else {}


def _columns(amounts: list[Mapping[str, int]]) -> dict[str, Column]:
    resources = {resource for each in amounts for resource in each}
    return {resource: _column([each.get(resource, 0) for each in amounts]) for resource in resources}


def _column(amounts: list[int]) -> Column:
    column = np.array([min(amount, LARGEST_AMOUNT) for amount in amounts], dtype=np.int64)
    column.flags.writeable = False
    return column
