"""Volcano with the default configuration of its chart, measured with Volcano 1.15.1.

Source: volcano.sh/volcano/installer/helm/chart/volcano/config/volcano-scheduler.conf, pkg/scheduler/plugins/predicates,
pkg/scheduler/plugins/nodeorder
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import CPU, MEMORY, NVIDIA_GPU
from webhook.kube.release import Release
from webhook.placement.batch_profiles.parts import NOTE, OVERUSED, ReasonsOnly, batch_profile, of_containers
from webhook.placement.framework.fit_error import Wording
from webhook.placement.framework.interface import (
    MAX_NODE_SCORE,
    Failure,
    Scope,
    ScoreColumn,
)
from webhook.placement.plugins import inter_pod_affinity, node_ports, node_volume_limits, pod_topology_spread
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.image_locality import ImageLocality
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, NodeResourcesFit, insufficient
from webhook.placement.plugins.node_unschedulable import NodeUnschedulable
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import PluginArgs

ERR_REASON_PODS_NUMBER = "node(s) pod number exceeded"
ERR_REASON_NOT_IDLE = "node(s) without enough idle resources"
_PRE_PREDICATE = "plugin {name} pre-predicates failed {reason}"
# The release of the Kubernetes libraries that Volcano is linked with. The release of the API server can differ.
_LINKED = Release(35)
_OVERCOMMIT_FACTOR = 1.2


class Overcommit:
    """Rejects a pod if its requests exceed 1.2 times the allocatable amounts of the cluster, minus the used amounts.

    A pod that names a group is not evaluated, because it is admitted with its group, whose requests are not known here.

    Source: volcano.sh/volcano/pkg/scheduler/plugins/overcommit/overcommit.go
    """

    name = "overcommit"

    def __init__(self) -> None:
        # The most by the last columns, which stay the same while no node changes. Threads write equal ones.
        self._most: tuple[Mapping[str, Column], dict[str, float]] = ({}, {})

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether `pod` has requests and names no group."""
        return bool(pod.requests) and not pod.has_group

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return every node if the cluster lacks a resource. Volcano then reports that the pod group is not ready."""
        if not self.is_relevant(pod, nodes):
            return ()
        columns, most = self._most
        if columns is not nodes.allocatable_columns:
            columns, most = self._most = (nodes.allocatable_columns, {})
        for resource, amount in in_time(pod.requests, expired):
            if resource not in most:
                most[resource] = _OVERCOMMIT_FACTOR * float(nodes.allocatable(resource).sum())
            if amount > most[resource] - nodes.requested_in_all(resource):
                every = np.ones(len(nodes.nodes), dtype=np.bool_)
                return (Failure(f"not enqueued: {resource} of the cluster is overcommitted", every),)
        return ()


class VolcanoFit(NodeResourcesFit):
    """NodeResourcesFit as Volcano's action `allocate` applies it: the reason of a node is its first missing resource.

    Resources that devices back do not count. The requests of pods that are being deleted count as free. A pod without
    requests is placed by the action `backfill`, which only checks the number of pods.

    Source: volcano.sh/volcano/pkg/scheduler/actions/allocate/allocate.go, predicate
    """

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Failure]:
        """Yield the nodes that lack a resource, in the order cpu, memory, other resources, number of pods.

        A node whose pods request more cpu or memory than it has accepts no pod with requests.
        """
        full = nodes.load.pods >= nodes.allowed_pods
        if not pod.requests:
            yield Failure(ERR_REASON_PODS_NUMBER, full)
            return
        rejected = np.zeros(len(nodes.nodes), dtype=np.bool_)
        releasing = _releasing(nodes)
        for resource, amount in in_time(_asked(pod), expired):
            short = _free(nodes, resource, releasing) < min(amount, LARGEST_AMOUNT)
            # Most pods find no node that is short of most resources.
            if np.count_nonzero(short):
                yield Failure(insufficient(resource) if amount else OVERUSED + resource, short & ~rejected)
                rejected |= short
        if np.count_nonzero(full):
            stays_full = full.copy()
            for row, pods in releasing.items():
                stays_full[row] = nodes.load.pods[row] - len(pods) >= nodes.allowed_pods[row]
            yield Failure(ERR_REASON_TOO_MANY_PODS, stays_full & ~rejected)
            yield Failure(ERR_REASON_PODS_NUMBER, full & ~stays_full & ~rejected)


class IdleResources:
    """Rejects nodes that pass all other filters, but on which Volcano does not bind the pod now.

    If a pod fits only after the end of pods that are being deleted, Volcano reserves the node but does not bind the pod
    yet. Binding a pod without requests fails on a node whose pods request more cpu or memory than it has.

    Source: volcano.sh/volcano/pkg/scheduler/api/node_info.go, FutureIdle and AddTask
    """

    name = "idle"
    scope = Scope.NODE

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Failure]:
        """Yield the nodes that lack room now and that `VolcanoFit` does not reject for it."""
        if pod.requests and not nodes.pods.is_any_terminating:
            return
        releasing = _releasing(nodes) if pod.requests else {}
        for resource, amount in in_time(_asked(pod), expired):
            least = min(amount, LARGEST_AMOUNT)
            lacks = nodes.allocatable(resource) - nodes.requested(resource) < least
            if pod.requests:
                lacks &= _free(nodes, resource, releasing) >= least
            yield Failure(ERR_REASON_NOT_IDLE, lacks)


def _asked(pod: PodInfo) -> Iterable[tuple[str, int]]:
    return ({CPU: 0, MEMORY: 0} | dict(pod.requests)).items()


def _releasing(nodes: Snapshot) -> dict[int, list[RunningPod]]:
    if not nodes.pods.is_any_terminating:
        return {}
    rows = np.unique(nodes.pods.rows_of(nodes.pods.terminating())).tolist()
    return {row: [each for each in nodes.nodes[row].pods if each.is_terminating] for row in rows}


def _free(nodes: Snapshot, resource: str, releasing: Mapping[int, Sequence[RunningPod]]) -> Column:
    free: Column = nodes.allocatable(resource) - nodes.requested(resource)
    for row, pods in releasing.items():
        free[row] += min(sum(each.requests.get(resource, 0) for each in pods), LARGEST_AMOUNT)
    return free


class LinkedBalancedAllocation(NodeResourcesBalancedAllocation):
    """NodeResourcesBalancedAllocation of the Kubernetes release in Volcano's build, without pod-level resources.

    Source: volcano.sh/volcano/pkg/scheduler/plugins/nodeorder/nodeorder.go, whose features omit PodLevelResources
    """

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return the scores of this release."""
        return super().score(of_containers(pod), nodes, rows, expired)

    def _is_compared(self, release: Release) -> bool:
        return super()._is_compared(_LINKED)


class Binpack:
    """Score by the used share of cpu and memory, including the pod. A node that lacks one of them scores 0 for it.

    Source: volcano.sh/volcano/pkg/scheduler/plugins/binpack/binpack.go, BinPackingScore
    """

    name = "binpack"
    scope = Scope.NODE

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> ScoreColumn | None:
        """Return the mean of the shares in percent, not rounded, or None if the pod requests neither cpu nor memory."""
        requests = [each for each in pod.requests if each[0] in (CPU, MEMORY)]
        if not requests:
            return None
        total = np.zeros(len(rows), dtype=np.float64)
        for resource, amount in requests:
            capacity = nodes.allocatable(resource).take(rows)
            used = nodes.requested(resource).take(rows) + min(amount, LARGEST_AMOUNT)
            if np.count_nonzero(capacity) == len(rows):
                total += used / capacity
            else:
                total += np.where(capacity > 0, used / np.maximum(capacity, 1), 0.0)
        return total / len(requests) * MAX_NODE_SCORE


def _reason(reason: str) -> str:
    if reason == ERR_REASON_TOO_MANY_PODS:
        return insufficient("pods")
    return insufficient(reason.removeprefix(OVERUSED)) if reason.startswith(OVERUSED) else reason


_ARGS = PluginArgs(balanced_resources=(CPU, MEMORY, NVIDIA_GPU), hard_pod_affinity_weight=0)
_AFFINITY = inter_pod_affinity.InterPodAffinity(_ARGS.hard_pod_affinity_weight, linked=_LINKED)
_SPREAD = pod_topology_spread.PodTopologySpread(_ARGS.default_constraints, system_defaulted=True)
_FIT, _NODE_AFFINITY, _TAINTS = VolcanoFit(), NodeAffinity(), TaintToleration()
_VOLUMES, _ZONE, _DEVICES = VolumeBinding(), VolumeZone(), DynamicResources()

VOLCANO = batch_profile(
    "volcano",
    _ARGS,
    tuple(ReasonsOnly(each, _PRE_PREDICATE) for each in (_NODE_AFFINITY, _VOLUMES, _ZONE, _DEVICES)),
    (
        _FIT,
        NodeUnschedulable(),
        _NODE_AFFINITY,
        _TAINTS,
        node_ports.NodePorts(),
        _AFFINITY,
        node_volume_limits.NodeVolumeLimits(needs_drivers=False),
        _ZONE,
        _SPREAD,
        _VOLUMES,
        _DEVICES,
        IdleResources(),
        # Last, so that the reasons of the nodes come first.
        Overcommit(),
    ),
    (
        (_FIT, 1),
        (LinkedBalancedAllocation(_ARGS.balanced_resources), 1),
        (_NODE_AFFINITY, 2),
        (ImageLocality(), 1),
        (_AFFINITY, 2),
        (_TAINTS, 3),
        (_SPREAD, 2),
        (Binpack(), 1),
    ),
    # Upstream, these are Unschedulable, and most others UnschedulableAndUnresolvable.
    frozenset(
        (
            node_ports.ERR_REASON,
            inter_pod_affinity.ERR_REASON_ANTI_AFFINITY,
            inter_pod_affinity.ERR_REASON_EXISTING_ANTI_AFFINITY,
            node_volume_limits.ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED,
            pod_topology_spread.ERR_REASON_CONSTRAINTS_NOT_MATCH,
            ERR_REASON_PODS_NUMBER,
        )
    ),
    Wording("0/{total} nodes are unavailable", _reason, "0/{0} nodes are unavailable: {0} {1}.".format, NOTE),
)
"""The profile of pods of Volcano."""
