"""The node constraints and scores of KAI, from the source of KAI 0.12.0 and from measurements.

KAI packs: for a pod with GPUs, the node with the fewest free GPUs comes first; for other pods, the one with the least
free cpu.

Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/conf_util/scheduler_conf_util.go, plugins/nodeplacement/pack.go,
plugins/resourcetype, k8s_internal/predicates
"""

from collections.abc import Iterator, Sequence

import numpy as np

from webhook.cluster.snapshot import LARGEST_AMOUNT, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import CPU, MEMORY, NVIDIA_GPU
from webhook.kube.release import Release
from webhook.placement.batch_profiles.parts import NOTE, OVERUSED, ReasonsOnly, batch_profile, of_containers
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.framework.fit_error import Wording
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult, Scope, ScoreColumn
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import (
    ERR_REASON_TOO_MANY_PODS,
    NodeResourcesFit,
    insufficient,
    missing_resource,
)
from webhook.placement.plugins.node_unschedulable import ERR_REASON as ERR_REASON_UNSCHEDULABLE
from webhook.placement.plugins.node_unschedulable import NodeUnschedulable
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import UnmodelledStep

_HIGHEST_DENSITY = 9.0
_RESOURCE_TYPE = 10
_NAMES = {NVIDIA_GPU: "GPUs", CPU: "CPU cores", MEMORY: "memory"}
_LARGEST = {NVIDIA_GPU: "GPU", CPU: "CPU", MEMORY: "memory"}
# Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/api/common_info/pod_errors.go, NewFitErrorInsufficientResource
_MIG = "nvidia.com/mig-"
_NOT_ENOUGH = "node(s) didn't have enough resources: {}"


class LargestNode:
    """Rejects a pod that requests more of a resource than the largest node has.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/k8s_internal/predicates/maxNodeResources.go
    """

    name = "MaxNodePoolResources"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes, with the first such resource as the reason. A share is less than one card."""
        if pod.shares_card and not nodes.allocatable(NVIDIA_GPU).any():
            return PreFilterResult(reason=f"No node has {_LARGEST[NVIDIA_GPU]} resources", is_summary=True)
        order = sorted(of_containers(pod).requests, key=lambda each: [*_LARGEST, each[0]].index(each[0]))
        for resource, amount in order:
            most = int(nodes.allocatable(resource).max(initial=0))
            if min(amount, LARGEST_AMOUNT) > most:
                name = _LARGEST.get(resource, resource)
                largest = f"Max {name} resources available in a single node is topped at {amount_text(resource, most)}"
                reason = largest if most else f"No node has {name} resources"
                return PreFilterResult(reason=reason, is_summary=True)
        return ALL_NODES


class KaiFit(NodeResourcesFit):
    """NodeResourcesFit as KAI applies it: every missing resource of a node is a reason.

    Devices of a class do not count.

    Pod-level resources do not count. A node whose pods request more cpu, memory or GPUs than it has accepts no pod.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/api/common_info/pod_errors.go,
    NewFitErrorInsufficientResource; api/pod_info/pod_info.go, getPodResourceRequest;
    api/resource_info/resource_requirment.go, LessEqualResource
    """

    def counted(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        """Yield the requests of the containers of `pod`."""
        return iter(of_containers(pod).requests)

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Failure]:
        """Yield the nodes that are short of a resource or of pods, by resource."""
        requests = {NVIDIA_GPU: 0, CPU: 0, MEMORY: 0} | dict(self.counted(pod))
        for resource, amount in in_time(requests.items(), expired):
            free = nodes.allocatable(resource) - nodes.requested(resource)
            short = free < min(amount, LARGEST_AMOUNT)
            if pod.shares_card and resource == NVIDIA_GPU:
                short |= nodes.allocatable(NVIDIA_GPU) == 0
            yield Failure(insufficient(resource) if amount else OVERUSED + resource, short)
        yield Failure(ERR_REASON_TOO_MANY_PODS, nodes.load.pods >= nodes.allowed_pods)


class Cordoned(NodeUnschedulable):
    """Rejects cordoned nodes, also for a pod that tolerates their taint.

    KAI also rejects nodes by their conditions; here, the taints that follow from these do.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/scheduler_util/scheduler_utils.go, CheckNodeConditionPredicate
    """

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the cordoned nodes."""
        return (Failure(ERR_REASON_UNSCHEDULABLE, nodes.unschedulable),)


class Pack:
    """Score nodes higher the less they have free: of GPUs for a pod that requests GPUs, or else of cpu.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/nodeplacement/pack.go
    """

    name = "nodeplacement"

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> ScoreColumn:
        """Return scores from 0 to 9, not rounded. Nodes without the resource score 0."""
        resource = NVIDIA_GPU if dict(pod.requests).get(NVIDIA_GPU) else CPU
        capacity = nodes.allocatable(resource).take(rows)
        free = (capacity - nodes.requested(resource).take(rows)).astype(np.float64)
        has = capacity > 0
        if not has.any():
            return np.zeros(len(rows), dtype=np.float64)
        least, most = free[has].min(), free[has].max()
        if most == 0:
            return np.zeros(len(rows), dtype=np.float64)
        density = np.ones(len(rows)) if least == most else 1 - (free - least) / (most - least)
        return np.where(has, _HIGHEST_DENSITY * density, 0.0)


class ResourceType:
    """Score nodes without GPUs higher for pods that request none.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/resourcetype
    """

    name = "resourcetype"
    scope = Scope.NODE

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> ScoreColumn | None:
        """Return 10 for nodes without GPUs and 0 for others, or None for a pod that requests GPUs or a share of one."""
        if pod.shares_card or dict(pod.requests).get(NVIDIA_GPU):
            return None
        return np.where(nodes.allocatable(NVIDIA_GPU).take(rows) > 0, 0, _RESOURCE_TYPE)


def _reason(reason: str) -> str:
    if reason == ERR_REASON_UNSCHEDULABLE:
        return "node is unschedulable"
    resource = missing_resource(reason)
    if reason.startswith(OVERUSED):
        resource = reason.removeprefix(OVERUSED)
    if reason == ERR_REASON_TOO_MANY_PODS:
        resource = "pods"
    if resource is not None and resource.startswith(_MIG):
        return f"node(s) didn't have enough of mig profile: {resource}"
    return reason if resource is None else _NOT_ENOUGH.format(_NAMES.get(resource, resource))


# With the plugin of the Kubernetes libraries that KAI is linked with; the release of the API server can differ.
_AFFINITY = InterPodAffinity(linked=Release(34))
_NODE_AFFINITY, _VOLUMES, _DEVICES = NodeAffinity(), VolumeBinding(), DynamicResources()

KAI = batch_profile(
    "kai",
    PluginArgs(),
    (LargestNode(), *(ReasonsOnly(each) for each in (_NODE_AFFINITY, _VOLUMES, _DEVICES))),
    (KaiFit(), Cordoned(), NodePorts(), TaintToleration(), _NODE_AFFINITY, _AFFINITY, _VOLUMES, _DEVICES),
    ((Pack(), 1), (ResourceType(), 1)),
    frozenset(),
    Wording("no nodes with enough resources were found", _reason, lambda _, reason: f"{reason}.", NOTE),
    (UnmodelledStep("GPU sharing", of_shares=True),),
)
"""The profile of pods of KAI."""
