"""Derive a snapshot from one that differs in a few nodes, at a cost that grows with the differences.

Unchanged columns are shared, so that results computed from them stay valid; changed columns are copied.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.images import Images
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Load, Rows, Snapshot, TaintClasses
from webhook.kube.ports import HostPort
from webhook.kube.resource_names import CPU, MEMORY

Amount = Callable[[NodeInfo], int]
AmountsOf = Callable[[NodeInfo], Mapping[str, int]]
HostPorts = Mapping[tuple[str, int], tuple[tuple[HostPort, int], ...]]

# The fields that `updated` can update. A snapshot with other fields is rebuilt, so that no field becomes stale.
KNOWN_FIELDS = frozenset(
    (
        *(
            "generation",
            "nodes",
            "namespaces",
            "rows",
            "load",
            "pods",
            "workloads",
            "storage",
            "csi",
            "is_without_pods",
        ),
        *("devices", "priority_classes", "full_quotas", "scheduler_evidence", "release", "nominated", "assumed"),
        *("pending", "volcano", "kai", "kueue", "pod_groups"),
        *("labels", "taints", "unschedulable", "allowed_pods", "images", "allocatable_columns", "_zeros", "_log"),
    )
)
KNOWN_LOAD_FIELDS = frozenset(("requested", "non_zero_requested", "pods", "host_ports"))


class NodeUpdate(NamedTuple):
    """A node that has changed."""

    before: NodeInfo
    after: NodeInfo


NodeUpdates = Mapping[int, NodeUpdate]


def updated(snapshot: Snapshot, infos: Iterable[NodeInfo], generation: int) -> Snapshot:
    """Return `snapshot` with `infos` in place of its nodes of the same names.

    The result equals a rebuilt snapshot. For nodes where only pods changed, only the columns of pods are updated.
    """
    changes = {}
    nodes = list(snapshot.nodes)
    for info in infos:
        row = snapshot.rows[info.node.name]
        changes[row] = NodeUpdate(nodes[row], info)
        nodes[row] = info
    if not _is_known(Snapshot, KNOWN_FIELDS) or not _is_known(Load, KNOWN_LOAD_FIELDS):
        return snapshot.with_nodes(nodes, generation)
    pods = _updated_pods(snapshot.pods, changes, nodes)
    load = _updated_load(snapshot.load, changes, len(nodes))
    result = replace(snapshot, generation=generation, nodes=tuple(nodes), load=load, pods=pods)
    of_other_facts = {row: change for row, change in changes.items() if change.before.node != change.after.node}
    return _with_facts(result, of_other_facts) if of_other_facts else result


def _updated_pods(pods: RunningPods, changes: NodeUpdates, nodes: Sequence[NodeInfo]) -> RunningPods:
    """Return the table of the running pods of `nodes`; where nodes only got more pods, these are appended."""
    repopulated = {row: change for row, change in changes.items() if change.before.pods != change.after.pods}
    if not repopulated:
        return pods
    if pods.is_fragmented:
        return RunningPods.of(nodes)
    if all(after.pods[: len(before.pods)] == before.pods for before, after in repopulated.values()):
        return pods.with_added({row: after.pods[len(before.pods) :] for row, (before, after) in repopulated.items()})
    return pods.with_rows({row: change.after for row, change in repopulated.items()})


def with_nodes(snapshot: Snapshot, infos: Iterable[NodeInfo], generation: int) -> Snapshot:
    """Return `snapshot` with exactly the nodes of `infos`, few of which have changed.

    The result equals a rebuilt snapshot. Rows move; a new node starts without facts and is then updated like a changed
    one.
    """
    nodes = sorted(infos, key=lambda info: info.node.name)
    if snapshot.pods.is_fragmented or not _is_known(Snapshot, KNOWN_FIELDS) or not _is_known(Load, KNOWN_LOAD_FIELDS):
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
    """Return `snapshot` with row `source[n]` as row n, an empty row where that is -1. `nodes` are its nodes."""
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


def _is_known(kind: type, known: frozenset[str]) -> bool:
    return {field.name for field in fields(kind)} == known


def _updated_load(load: Load, changes: NodeUpdates, rows: int) -> Load:
    return Load(
        requested=_updated_columns(load.requested, changes, rows, lambda info: info.requested),
        non_zero_requested={
            CPU: _updated(load.non_zero_requested[CPU], changes, lambda info: info.non_zero_milli_cpu),
            MEMORY: _updated(load.non_zero_requested[MEMORY], changes, lambda info: info.non_zero_memory_bytes),
        },
        pods=_updated(load.pods, changes, lambda info: len(info.pods)),
        host_ports=updated_host_ports(load.host_ports, changes),
    )


def _with_facts(snapshot: Snapshot, changes: NodeUpdates) -> Snapshot:
    """Return `snapshot` with columns for the new facts of the nodes; it already has their NodeInfos."""
    nodes = snapshot.nodes
    keys = {
        key
        for before, after in changes.values()
        for key in {*before.node.labels, *after.node.labels}
        if before.node.labels.get(key) != after.node.labels.get(key)
    }
    labels, taints, images = snapshot.labels, snapshot.taints, snapshot.images
    if keys:
        labels = labels.with_keys(keys, [info.node.labels for info in nodes])
    if any(before.node.taints != after.node.taints for before, after in changes.values()):
        taints = TaintClasses.of(info.node.taints for info in nodes)
    if any(before.node.images != after.node.images for before, after in changes.values()):
        images = Images([info.node.images for info in nodes])
    allocatable = _updated_columns(
        snapshot.allocatable_columns, changes, len(nodes), lambda info: info.node.allocatable
    )
    return replace(
        snapshot,
        labels=labels,
        taints=taints,
        images=images,
        unschedulable=_updated(snapshot.unschedulable, changes, lambda info: info.node.unschedulable),
        allowed_pods=_updated(snapshot.allowed_pods, changes, lambda info: info.node.allowed_pods),
        allocatable_columns=allocatable,
    )


def _updated(column: NDArray[Any], changes: NodeUpdates, amount: Amount) -> NDArray[Any]:
    """Return `column` itself if no row changes, else a copy."""
    wanted = {row: min(amount(change.after), LARGEST_AMOUNT) for row, change in changes.items()}
    different = {row: value for row, value in wanted.items() if column[row] != value}
    if not different:
        return column
    column = column.copy()
    for row, value in different.items():
        column[row] = value
    column.flags.writeable = False
    return column


def _updated_columns(
    columns: Mapping[str, Column], changes: NodeUpdates, rows: int, amounts: AmountsOf
) -> dict[str, Column]:
    """Return a column for each resource that a node has or had; a column of zeros is equivalent to none."""
    touched = {resource for change in changes.values() for info in change for resource in amounts(info)}
    renewed = dict(columns)
    for resource in touched:
        before = columns.get(resource)
        if before is None:
            before = np.zeros(rows, dtype=np.int64)
        renewed[resource] = _updated(before, changes, lambda info, name=resource: amounts(info).get(name, 0))  # type: ignore[misc] # a bound default
    return renewed


def updated_host_ports(host_ports: HostPorts, changes: NodeUpdates) -> HostPorts:
    """Return the used host ports after `changes`."""
    taken = {row: {port for pod in change.after.pods for port in pod.host_ports} for row, change in changes.items()}
    touched = {
        (port.protocol, port.port)
        for change in changes.values()
        for pod in change.before.pods
        for port in pod.host_ports
    } | {(port.protocol, port.port) for ports in taken.values() for port in ports}
    if not touched:
        return host_ports
    renewed = dict(host_ports)
    for key in touched:
        left = [(port, row) for port, row in host_ports.get(key, ()) if row not in changes]
        left += [(port, row) for row, ports in taken.items() for port in ports if (port.protocol, port.port) == key]
        renewed[key] = tuple(left)
        if not left:
            del renewed[key]
    return renewed
