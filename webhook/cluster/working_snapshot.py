"""A snapshot with columns of its own, in which the pods of a node are changed in place."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.row_log import ClassifiedPod, RowChange
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Load, Snapshot
from webhook.cluster.update import NodeUpdate, updated_host_ports
from webhook.kube.pod.amounts import CPU, MEMORY

# The fields on which filters and scores depend, beside the pods of the nodes.
_FACTS = (
    *("labels", "taints", "unschedulable", "allowed_pods", "images", "allocatable_columns"),
    *("namespaces", "workloads", "storage", "csi", "devices", "priority_classes", "nominated", "release"),
)
_MOST_OLD_CLASSES = 1000


class WorkingSnapshot:
    """A copy of `base` with more pods, which follows the cluster. Not thread-safe.

    `snapshot.log` has the rows that were changed since `snapshot` was made. It is a new log when anything else changes.
    """

    def __init__(self, base: Snapshot, pods: Iterable[RunningPod] = ()) -> None:
        self._base = base
        load = Load(
            {resource: column.copy() for resource, column in base.load.requested.items()},
            {resource: column.copy() for resource, column in base.load.non_zero_requested.items()},
            base.load.pods.copy(),
            base.load.host_ports,
        )
        self.snapshot = replace(base, nodes=[*base.nodes], load=load, pods=base.pods.layered())
        for pod in pods:
            self.add(pod)
        self.snapshot.log.clear()

    @property
    def is_worn(self) -> bool:
        """Return whether a new copy is due: many classes are those of pods that are gone."""
        snapshot = self.snapshot
        return snapshot.pods.classes.own_count > _MOST_OLD_CLASSES

    def add(self, pod: RunningPod) -> None:
        """Show `pod` as running on its node, which is one of the snapshot."""
        row = self.snapshot.rows[pod.node_name]
        self._set(row, self.snapshot.nodes[row].with_pods((pod,)), (pod,), ())

    def follow(self, base: Snapshot, pods_on: Callable[[str], Sequence[RunningPod]], nodes: Iterable[str] = ()) -> bool:
        """Show the pods of `base`, a later state of the cluster, and `pods_on` each node, which changed for `nodes`.

        A pod in place of an equal one is no change. Return False, without a change, if more than pods has changed: a
        new copy is then needed.
        """
        before = self._base
        if base is not before:
            if before.rows is not base.rows and before.rows != base.rows:
                return False
            if any(getattr(before, name) is not getattr(base, name) for name in _FACTS):
                return False
            if before.left_out is not base.left_out or before.pods.classes is not base.pods.classes:
                return False
        shown = self.snapshot
        rows = {base.rows[node] for node in nodes}
        if base is not before:
            self._base = base
            self.snapshot = replace(base, nodes=shown.nodes, load=shown.load, pods=shown.pods)
            self.snapshot.take_log(shown)
            rows.update(base.changed_rows(before))
        for row in rows:
            self._follow_row(row, base.nodes[row], pods_on(base.nodes[row].node.name))
        return True

    def _follow_row(self, row: int, info: NodeInfo, more: Sequence[RunningPod]) -> None:
        target = info.with_pods(more) if more else info
        before = self.snapshot.nodes[row]
        stay = {id(pod) for pod in before.pods}.intersection(map(id, target.pods))
        removed = [pod for pod in before.pods if id(pod) not in stay]
        added = []
        for pod in target.pods:
            if id(pod) in stay:
                continue
            equal = next((each for each in removed if each.is_same_load(pod)), None)
            if equal is None:
                added.append(pod)
            else:
                removed.remove(equal)
        if added or removed:
            self._set(row, target, added, removed)
        else:
            self._nodes[row] = target

    @property
    def _nodes(self) -> list[NodeInfo]:
        nodes = self.snapshot.nodes
        assert isinstance(nodes, list)  # noqa: S101 - made here
        return nodes

    def _set(self, row: int, info: NodeInfo, added: Sequence[RunningPod], removed: Sequence[RunningPod]) -> None:
        snapshot, load = self.snapshot, self.snapshot.load
        before, self._nodes[row] = snapshot.nodes[row], info
        for resource in {resource for pods in (added, removed) for pod in pods for resource in pod.requests}:
            self._column(resource)[row] = min(info.requested.get(resource, 0), LARGEST_AMOUNT)
        load.non_zero_requested[CPU][row] = min(info.non_zero_milli_cpu, LARGEST_AMOUNT)
        load.non_zero_requested[MEMORY][row] = min(info.non_zero_memory_bytes, LARGEST_AMOUNT)
        load.pods[row] = len(info.pods)
        if any(pod.host_ports for pods in (added, removed) for pod in pods):
            host_ports = updated_host_ports(load.host_ports, {row: NodeUpdate(before, info, removed, added)})
            snapshot.load = replace(load, host_ports=host_ports)
        pods, classes = snapshot.pods, snapshot.pods.classes
        for pod in removed:
            pods = pods.without(pod, row)
        snapshot.pods = pods.with_added({row: added}) if added else pods
        without = tuple([ClassifiedPod(classes.number(pod), pod) for pod in removed])
        more = tuple([ClassifiedPod(classes.number(pod), pod) for pod in added])
        snapshot.log.add(RowChange(row, more, without))

    def _column(self, resource: str) -> Column:
        requested = self.snapshot.load.requested
        column = requested.get(resource)
        if column is None:
            column = np.zeros(len(self.snapshot.nodes), dtype=np.int64)
            requested[resource] = column
        return column
