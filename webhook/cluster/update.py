"""Derive a snapshot from one that differs in a few nodes. Unchanged columns are shared, others copied."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.images import Images
from webhook.cluster.index.labels import TaintClasses
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Load, Rows, Snapshot
from webhook.kube.pod.amounts import CPU, MEMORY, Amounts
from webhook.kube.pod.ports import HostPort

HostPorts = Mapping[tuple[str, int], tuple[tuple[HostPort, int], ...]]


class NodeUpdate(NamedTuple):
    """A changed node. The pods `lost` are gone and the pods `added` are new; the load of the other pods is the same."""

    before: NodeInfo
    after: NodeInfo
    lost: Sequence[RunningPod]
    added: Sequence[RunningPod]

    @classmethod
    def of(cls, before: NodeInfo, after: NodeInfo) -> "NodeUpdate":
        """Return the change of a node. In most changes, pods were only added, or are the same."""
        count = len(before.pods)
        kept = after.pods[:count]
        if kept == before.pods or (len(kept) == count and all(map(RunningPod.is_same_load, kept, before.pods))):
            return cls(before, after, (), after.pods[count:])
        return cls(before, after, before.pods, after.pods)


NodeUpdates = Mapping[int, NodeUpdate]


def updated(snapshot: Snapshot, infos: Iterable[NodeInfo], generation: int) -> Snapshot:
    """Return `snapshot` with the nodes that have the names of `infos` replaced by `infos`.

    The result equals a rebuilt snapshot. If only the pods of nodes changed, only the columns of pods are updated.
    """
    changes = {}
    nodes = list(snapshot.nodes)
    for info in infos:
        row = snapshot.rows[info.node.name]
        changes[row] = NodeUpdate.of(nodes[row], info)
        nodes[row] = info
    pods = _updated_pods(snapshot.pods, changes, nodes)
    load = _updated_load(snapshot.load, changes, len(nodes))
    result = replace(snapshot, generation=generation, nodes=tuple(nodes), load=load, pods=pods)
    of_other_facts = {
        row: change
        for row, change in changes.items()
        if change.before.node is not change.after.node and change.before.node != change.after.node
    }
    return _with_facts(result, of_other_facts) if of_other_facts else result


def _updated_pods(pods: RunningPods, changes: NodeUpdates, nodes: Sequence[NodeInfo]) -> RunningPods:
    """Return the table of the running pods of `nodes`. Pods are appended if nodes only got more pods."""
    repopulated = {row: change for row, change in changes.items() if change.lost or change.added}
    if not repopulated:
        return pods
    if pods.is_fragmented:
        return RunningPods.of(nodes)
    if not any(change.lost for change in repopulated.values()):
        return pods.with_added({row: change.added for row, change in repopulated.items()})
    return pods.with_rows({row: change.after for row, change in repopulated.items()})


def with_nodes(snapshot: Snapshot, infos: Iterable[NodeInfo], generation: int) -> Snapshot:
    """Return `snapshot` with exactly the nodes of `infos`; few of them have changed.

    The result equals a rebuilt snapshot. Rows are moved. A new node starts as an empty row, which is updated like a
    changed node.
    """
    nodes = sorted(infos, key=lambda info: info.node.name)
    if snapshot.pods.is_fragmented:
        return snapshot.with_nodes(nodes, generation)
    source = np.array([snapshot.rows.get(info.node.name, -1) for info in nodes], dtype=np.intp)
    known = [
        _unknown(info.node.name) if row < 0 else snapshot.nodes[row] for row, info in zip(source, nodes, strict=True)
    ]
    if 2 * np.count_nonzero(source >= 0) < len(nodes):
        return snapshot.with_nodes(nodes, generation)
    moved = _moved(snapshot, source, known)
    return updated(moved, (info for info, before in zip(nodes, known, strict=True) if info is not before), generation)


def _unknown(name: str) -> NodeInfo:
    return NodeInfo.of(Node(name, {}, (), unschedulable=False, allocatable={}, allowed_pods=0, images={}))


def _moved(snapshot: Snapshot, source: Rows, nodes: list[NodeInfo]) -> Snapshot:
    """Return `snapshot` with row `source[n]` as row n, or an empty row if `source[n]` is -1."""
    row_now = np.full(len(snapshot.nodes), -1, dtype=np.int32)
    kept = np.flatnonzero(source >= 0)
    row_now[source[kept]] = kept
    load = snapshot.load
    host_ports = {
        key: left
        for key, taken in load.host_ports.items()
        if (left := tuple([(port, int(row_now[row])) for port, row in taken if row_now[row] >= 0]))
    }
    return replace(
        snapshot,
        nodes=tuple(nodes),
        rows={info.node.name: row for row, info in enumerate(nodes)},
        labels=snapshot.labels.with_rows_moved(source),
        taints=TaintClasses.of(info.node.taints for info in nodes),
        unschedulable=_placed(snapshot.unschedulable, source),
        allowed_pods=_placed(snapshot.allowed_pods, source),
        load=Load(
            {resource: _placed(column, source) for resource, column in load.requested.items()},
            {resource: _placed(column, source) for resource, column in load.non_zero_requested.items()},
            _placed(load.pods, source),
            host_ports,
        ),
        images=Images([info.node.images for info in nodes]),
        pods=snapshot.pods.with_rows_moved(row_now),
        allocatable_columns={
            resource: _placed(column, source) for resource, column in snapshot.allocatable_columns.items()
        },
        _zeros=_placed(np.zeros(len(snapshot.nodes), dtype=np.int64), source),
    )


def _placed(column: NDArray[Any], source: Rows) -> NDArray[Any]:
    placed = np.append(column, np.zeros(1, dtype=column.dtype))[source]
    placed.flags.writeable = False
    return placed


def _updated_load(load: Load, changes: NodeUpdates, rows: int) -> Load:
    counted, pairs = load.non_zero_requested, [(row, each.before, each.after) for row, each in changes.items()]
    return Load(
        requested=_updated_columns(
            load.requested, [(row, before.requested, after.requested) for row, before, after in pairs], rows
        ),
        non_zero_requested={
            CPU: _updated(counted[CPU], [(row, a.non_zero_milli_cpu, b.non_zero_milli_cpu) for row, a, b in pairs]),
            MEMORY: _updated(
                counted[MEMORY], [(row, a.non_zero_memory_bytes, b.non_zero_memory_bytes) for row, a, b in pairs]
            ),
        },
        pods=_updated(load.pods, [(row, len(before.pods), len(after.pods)) for row, before, after in pairs]),
        host_ports=updated_host_ports(load.host_ports, changes),
    )


def _with_facts(snapshot: Snapshot, changes: NodeUpdates) -> Snapshot:
    """Return `snapshot`, which already has the changed NodeInfos, with columns that fit the changed Node objects."""
    nodes = snapshot.nodes
    rows = [(row, change.before.node, change.after.node) for row, change in changes.items()]
    keys = {
        key
        for _, before, after in rows
        for key in {*before.labels, *after.labels}
        if before.labels.get(key) != after.labels.get(key)
    }
    labels, taints, images = snapshot.labels, snapshot.taints, snapshot.images
    if keys:
        labels = labels.with_keys(keys, [info.node.labels for info in nodes])
    if any(before.taints != after.taints for _, before, after in rows):
        taints = TaintClasses.of(info.node.taints for info in nodes)
    if any(before.images != after.images for _, before, after in rows):
        images = Images([info.node.images for info in nodes])
    allocatable = [(row, before.allocatable, after.allocatable) for row, before, after in rows]
    return replace(
        snapshot,
        labels=labels,
        taints=taints,
        images=images,
        unschedulable=_updated(snapshot.unschedulable, [(row, a.unschedulable, b.unschedulable) for row, a, b in rows]),
        allowed_pods=_updated(snapshot.allowed_pods, [(row, a.allowed_pods, b.allowed_pods) for row, a, b in rows]),
        allocatable_columns=_updated_columns(snapshot.allocatable_columns, allocatable, len(nodes)),
    )


def _updated(column: NDArray[Any], amounts: Sequence[tuple[int, int, int]]) -> NDArray[Any]:
    """Return `column` with `amounts`, given as (row, amount before, new amount)."""
    changed = [(row, after) for row, before, after in amounts if before != after]
    if not changed:
        return column
    column = column.copy()
    for row, after in changed:
        column[row] = min(after, LARGEST_AMOUNT)
    column.setflags(write=False)
    return column


def _updated_columns(
    columns: Mapping[str, Column], amounts: Sequence[tuple[int, Amounts, Amounts]], rows: int
) -> dict[str, Column]:
    """Return a column for each resource that a node has or had. A column of zeros is equivalent to no column."""
    touched: dict[str, list[tuple[int, int, int]]] = {}
    for row, before, after in amounts:
        for resource in before.keys() | after.keys():
            touched.setdefault(resource, []).append((row, before.get(resource, 0), after.get(resource, 0)))
    renewed = dict(columns)
    for resource, changed in touched.items():
        known = columns.get(resource)
        renewed[resource] = _updated(np.zeros(rows, dtype=np.int64) if known is None else known, changed)
    return renewed


def updated_host_ports(host_ports: HostPorts, changes: NodeUpdates) -> HostPorts:
    """Return the used host ports after `changes`."""
    had, taken = {}, {}
    for row, change in changes.items():
        if any(pod.rare.host_ports for pods in (change.lost, change.added) for pod in pods):
            had[row], taken[row] = _host_ports(change.before), _host_ports(change.after)
    touched = {(port.protocol, port.port) for row, ports in taken.items() for port in ports ^ had[row]}
    if not touched:
        return host_ports
    renewed = dict(host_ports)
    for key in touched:
        left = [(port, row) for port, row in host_ports.get(key, ()) if row not in taken]
        left += [(port, row) for row, ports in taken.items() for port in ports if (port.protocol, port.port) == key]
        renewed[key] = tuple(left)
        if not left:
            del renewed[key]
    return renewed


def _host_ports(info: NodeInfo) -> set[HostPort]:
    return {port for pod in info.pods for port in pod.rare.host_ports}
