"""A snapshot with its own columns, in which the pods of nodes are changed in place."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from webhook.cluster.index.shown_pods import ShownPods
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.row_log import PodChange
from webhook.cluster.snapshot import LARGEST_AMOUNT, Load, Snapshot
from webhook.cluster.update import NodeUpdate, updated_host_ports
from webhook.kube.pod.amounts import CPU, MEMORY

# The fields on which filters, scores and suggestions depend, besides the pods of the nodes.
_FACTS = (
    *("labels", "taints", "unschedulable", "allowed_pods", "images", "allocatable_columns"),
    *("namespaces", "workloads", "storage", "csi", "devices", "priority_classes", "runtime_classes", "nominated"),
    "release",
)
_MOST_OLD_CLASSES = 1000


class WorkingSnapshot:
    """A copy of `base` with added pods, which is updated as the cluster changes. Not thread-safe.

    `snapshot.log` contains the rows that were changed since `snapshot` was made. If anything else changes, the log is a
    new object.
    """

    def __init__(self, base: Snapshot, pods: Iterable[RunningPod] = ()) -> None:
        self._base = base
        self._nodes, self._pods = [*base.nodes], ShownPods(base.pods)
        load = Load(
            {resource: column.copy() for resource, column in base.load.requested.items()},
            {resource: column.copy() for resource, column in base.load.non_zero_requested.items()},
            base.load.pods.copy(),
            base.load.host_ports,
        )
        self.snapshot = replace(base, nodes=self._nodes, load=load, pods=self._pods)
        for pod in pods:
            self.add(pod)
        self.snapshot.log.clear()

    @property
    def is_worn(self) -> bool:
        """Return whether a new copy should be made, because many classes belong to pods that are gone."""
        return self._pods.classes.own_count > _MOST_OLD_CLASSES

    def add(self, pod: RunningPod) -> None:
        """Show `pod` as running on its node, which must be in the snapshot."""
        row = self.snapshot.rows[pod.node_name]
        self._set(row, self._nodes[row].with_pods((pod,)), (pod,), ())

    def remove(self, pod: RunningPod) -> None:
        """Remove `pod`, which was added before."""
        row = self.snapshot.rows[pod.node_name]
        self._set(row, self._nodes[row].without_pod(pod), (), (pod,))

    def follow(self, base: Snapshot, pods_on: Callable[[str], Sequence[RunningPod]], nodes: Iterable[str] = ()) -> bool:
        """Show the pods of `base`, a later state of the cluster, and the added pods.

        `pods_on` returns the added pods of a node; those of `nodes` have changed. Replacing a pod by an equal one is
        not a change. If anything but pods has changed, return False and change nothing; the caller then needs a new
        copy.
        """
        before, shown = self._base, self.snapshot
        if before.rows is not base.rows and before.rows != base.rows:
            return False
        if any(getattr(before, name) is not getattr(base, name) for name in _FACTS):
            return False
        if before.left_out is not base.left_out or before.pods.classes is not base.pods.classes:
            return False
        self._base = base
        self.snapshot = replace(base, nodes=self._nodes, load=shown.load, pods=self._pods)
        self.snapshot.take_log(shown)
        rows = {base.rows[node] for node in nodes}
        rows.update(base.changed_rows(before))
        for row in rows:
            self._follow_row(row, base.nodes[row], pods_on(base.nodes[row].node.name))
        return True

    def _follow_row(self, row: int, info: NodeInfo, more: Sequence[RunningPod]) -> None:
        target = info.with_pods(more) if more else info
        before = self._nodes[row]
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

    def _set(self, row: int, info: NodeInfo, added: Sequence[RunningPod], removed: Sequence[RunningPod]) -> None:
        snapshot, load = self.snapshot, self.snapshot.load
        before, self._nodes[row] = self._nodes[row], info
        has_ports = False
        columns, sums, amounts = load.requested, load.sums, info.requested
        for pod in (*added, *removed):
            has_ports = has_ports or bool(pod.rare.host_ports)
            for resource in pod.requests:
                column, amount = columns.get(resource), min(amounts.get(resource, 0), LARGEST_AMOUNT)
                if column is None:
                    column = columns[resource] = np.zeros(len(self._nodes), dtype=np.int64)
                if resource in sums:
                    sums[resource] += amount - column.item(row)
                column[row] = amount
        load.non_zero_requested[CPU][row] = min(info.non_zero_milli_cpu, LARGEST_AMOUNT)
        load.non_zero_requested[MEMORY][row] = min(info.non_zero_memory_bytes, LARGEST_AMOUNT)
        load.pods[row] = len(info.pods)
        if has_ports:
            host_ports = updated_host_ports(load.host_ports, {row: NodeUpdate(before, info, removed, added)})
            snapshot.load = replace(load, host_ports=host_ports)
        pods, log = self._pods, snapshot.log
        for pod in removed:
            log.add(PodChange(row, -1, pods.remove(pod, row), pod))
        for pod in added:
            log.add(PodChange(row, 1, pods.add(pod, row), pod))
