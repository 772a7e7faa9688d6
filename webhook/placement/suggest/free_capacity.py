"""Changes that give the pod enough capacity on a node of a group: reduce requests, free resources, or evict pods."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import key_of
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.kube.pod.ports import HostPort
from webhook.placement.framework.node_states import healthy_amounts
from webhook.placement.preemption.default_preemption import best_on
from webhook.placement.profiles.profile import Profile
from webhook.placement.suggest.changes import Change, Evict, Free, Scenario, Uncordon
from webhook.placement.suggest.node_groups import NodeGroup
from webhook.placement.suggest.pod_changes import ReduceRequest, ReplaceRequest, WithoutHostPort

Share = NDArray[np.float64]

# The most other forms of a resource that are tried for a group.
_MOST_FORMS = 2
# The most nodes of a group that are searched for the one with the fewest victims.
_MOST_SEARCHED = 32

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.(?P<gigabytes>\d+)gb(?:\..+)?")
# Gigabytes that rank whole and shared cards behind all slices that are large enough.
_WHOLE_CARDS = {"nvidia.com/gpu": 100_000, "nvidia.com/gpu.shared": 99_999}
_RDMA = "rdma/"


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """`changes` that give the pod enough capacity on the node in `row`."""

    row: int
    changes: tuple[Change, ...]


def capacity_changes(
    profile: Profile, group: NodeGroup, scenario: Scenario, running: Snapshot, expired: Expired, *, evicts: bool
) -> Iterator[CapacityChange]:
    """Yield changes that give the pod enough capacity, each on the node of `group` that is best for it.

    `running` are the nodes without nominated pods, which cannot be evicted. `evicts` is true if kube-scheduler evicts
    pods for the unchanged pod.
    """
    row = int(group.rows[0])
    if not (group.short or group.has_too_many_pods or group.has_taken_ports):
        yield CapacityChange(row, _uncordon(group, scenario.nodes, row))
        return
    if not group.has_too_many_pods:
        yield from _reduce_requests(group, scenario)
        yield from _replace_requests(group, scenario)
    if group.changes or group.is_cordoned:
        # A filter adds the nominated pods by itself.
        change = _evict(profile, group, Scenario(scenario.pod, running), expired) or _free_on_best_node(group, scenario)
    else:
        change = None if evicts else _free_on_best_node(group, scenario)
    if change is not None:
        yield change


def _reduce_requests(group: NodeGroup, scenario: Scenario) -> Iterator[CapacityChange]:
    """Reduce requests to the free amounts on the node with the largest free share of the requests."""
    pod, nodes = scenario
    requested, overhead = dict(pod.requests), dict(pod.overhead)
    shares = [_free(nodes, group, resource) / requested[resource] for resource in group.short]
    share = np.minimum.reduce([np.ones(len(group.rows)), *shares])
    for resource in group.short:
        # A node whose devices are not all healthy is no reason to request fewer.
        share[_lacks_healthy(nodes, group, resource, requested[resource])] = 0
    row = _first_largest(group, share)
    if not share.any():
        return
    requests = tuple(
        ReduceRequest(each, _free_at(nodes, each, row), requested[each], overhead.get(each, 0)) for each in group.short
    )
    if all(request.amount > request.overhead for request in requests):
        ports = tuple(WithoutHostPort(port) for port in _taken_ports(scenario, row)) if group.has_taken_ports else ()
        yield CapacityChange(row, (*_uncordon(group, nodes, row), *requests, *ports))


def _replace_requests(group: NodeGroup, scenario: Scenario) -> Iterator[CapacityChange]:
    """Request another form of the only insufficient resource, if no node has the resource and one has the form."""
    pod, nodes = scenario
    requested = dict(pod.requests)
    if len(group.short) != 1 or group.has_taken_ports or nodes.allocatable(group.short[0]).any():
        return
    (resource,) = group.short
    amount, found = requested[resource], 0
    if _lacks_healthy(nodes, group, resource, amount).any():
        return
    for other in other_forms(resource, (name for name in nodes.allocatable_columns if name not in requested)):
        is_enough = _free(nodes, group, other) >= amount
        if is_enough.any() and found < _MOST_FORMS:
            found += 1
            row = _first_largest(group, is_enough.astype(np.float64))
            yield CapacityChange(row, (*_uncordon(group, nodes, row), ReplaceRequest(resource, other, amount)))


def _free_on_best_node(group: NodeGroup, scenario: Scenario) -> CapacityChange | None:
    """Free the missing amounts on the node with the smallest missing share of the requests."""
    pod, nodes = scenario
    requested = dict(pod.requests)
    is_large_enough = nodes.allowed_pods[group.rows] > 0
    shares = []
    for resource in group.short:
        is_large_enough &= nodes.allocatable(resource)[group.rows] >= requested[resource]
        shares.append(_free(nodes, group, resource) / requested[resource])
    if not is_large_enough.any():
        return None
    share = np.minimum.reduce([np.ones(len(group.rows)), *shares])
    # The sort is stable: of equal nodes, the first by name.
    ranked = group.rows[np.argsort(np.where(is_large_enough, -share, np.inf), kind="stable")]
    tried = ranked[: min(int(is_large_enough.sum()), _MOST_SEARCHED)].tolist()
    row = next((each for each in tried if _can_be_freed(group, scenario, each)), None)
    if row is None:
        return None
    info = nodes.nodes[row]
    free = Free(
        info.node.name,
        tuple((each, requested[each] - _free_at(nodes, each, row)) for each in group.short),
        pods=max(len(info.pods) + 1 - info.node.allowed_pods, 0) if group.has_too_many_pods else 0,
        ports=_taken_ports(scenario, row) if group.has_taken_ports else (),
    )
    return CapacityChange(row, (*_uncordon(group, nodes, row), free))


def _can_be_freed(group: NodeGroup, scenario: Scenario, row: int) -> bool:
    """Return whether the node, with only its pods with reserved room, would have the missing amounts free."""
    pod, nodes = scenario
    info = nodes.nodes[row]
    reserved = [each for each in info.pods if each.is_reserved]
    if not reserved:
        return True
    ports = _taken_ports(scenario, row) if group.has_taken_ports else ()
    if any(port.conflicts(taken) for port in ports for each in reserved for taken in each.rare.host_ports):
        return False
    if group.has_too_many_pods and len(reserved) + 1 > info.node.allowed_pods:
        return False
    requested = dict(pod.requests)
    return all(
        requested[resource] + sum(each.requests.get(resource, 0) for each in reserved)
        <= info.node.allocatable.get(resource, 0)
        for resource in group.short
    )


def _evict(profile: Profile, group: NodeGroup, scenario: Scenario, expired: Expired) -> CapacityChange | None:
    """Evict the pods that kube-scheduler would evict on a node of the group after the other changes are made."""
    rows = group.rows[:_MOST_SEARCHED].tolist()
    nodes = scenario.nodes
    uncordoned = [change for row in rows for change in _uncordon(group, nodes, row)]
    changed = scenario
    for change in (*group.changes, *uncordoned):
        changed = change.apply(changed)
    best = best_on(profile, changed.pod, changed.nodes, rows, expired)
    if best is None:
        return None
    row = nodes.rows[best.node]
    return CapacityChange(row, (*_uncordon(group, nodes, row), Evict(best.node, tuple(map(key_of, best.victims)))))


def _uncordon(group: NodeGroup, nodes: Snapshot, row: int) -> tuple[Change, ...]:
    return (Uncordon(nodes.nodes[row].node.name),) if group.is_cordoned else ()


def _free(nodes: Snapshot, group: NodeGroup, resource: str) -> Share:
    free = nodes.allocatable(resource)[group.rows] - nodes.requested(resource)[group.rows]
    return free.astype(np.float64)


def _lacks_healthy(nodes: Snapshot, group: NodeGroup, resource: str, amount: int) -> Mask:
    """Return the nodes of `group` that would offer `amount` of `resource` only if all their devices were healthy."""
    offered, healthy = nodes.allocatable(resource)[group.rows], healthy_amounts(nodes, resource)[group.rows]
    lacks: Mask = (offered < amount) & (amount <= healthy)
    return lacks


def _free_at(nodes: Snapshot, resource: str, row: int) -> int:
    return int(nodes.allocatable(resource)[row]) - int(nodes.requested(resource)[row])


def _first_largest(group: NodeGroup, share: Share) -> int:
    return int(group.rows[int(share.argmax())])


def _taken_ports(scenario: Scenario, row: int) -> tuple[HostPort, ...]:
    taken: dict[tuple[str, int], list[HostPort]] = {}
    for running in scenario.nodes.nodes[row].pods:
        for port in running.rare.host_ports:
            taken.setdefault((port.protocol, port.port), []).append(port)
    return tuple(
        port
        for port in dict.fromkeys(scenario.pod.host_ports)
        if any(port.conflicts(each) for each in taken.get((port.protocol, port.port), ()))
    )


def other_forms(resource: str, offered: Iterable[str]) -> list[str]:
    """Return the resources in `offered` that are another form of `resource`, the closest first.

    A form that is at least as large comes before a smaller one. Only names of NVIDIA's and Mellanox's device plugins
    are known, because other vendors have only one name for a device.
    """
    if resource.startswith(_RDMA):
        devices = [each for each in offered if each.startswith(_RDMA) and each != resource]
        return sorted(devices, key=lambda each: (-SequenceMatcher(None, resource, each).ratio(), each))
    size = _gigabytes(resource)
    if size is None:
        return []
    sizes = {each: other for each in offered if each != resource and (other := _gigabytes(each)) is not None}
    return sorted(sizes, key=lambda each: (sizes[each] < size, abs(sizes[each] - size), each))


def _gigabytes(resource: str) -> int | None:
    slice_ = _MIG.fullmatch(resource)
    return int(slice_["gigabytes"]) if slice_ else _WHOLE_CARDS.get(resource)
