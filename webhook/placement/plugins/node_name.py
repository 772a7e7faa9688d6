"""NodeName: a pod with `spec.nodeName` fits on that node only."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.release import Change
from webhook.placement.framework.interface import Failure, PreFilterResult, Scope
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) didn't match the requested node name"


class NodeName:
    """Reject every node but the one that `spec.nodeName` names.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename/node_name.go
    """

    name = "NodeName"
    scope = Scope.FACTS

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Return the named node as the only candidate."""
        is_only = pod.node_name and nodes.release.has(Change.NODE_NAME_IS_A_PRE_FILTER)
        return PreFilterResult(frozenset((pod.node_name,)) if is_only else None)

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return all other nodes, if `pod` names one."""
        if not pod.node_name:
            return ()
        rejected = np.ones(len(nodes.nodes), dtype=np.bool_)
        row = nodes.rows.get(pod.node_name)
        if row is not None:
            rejected[row] = False
        return (Failure(ERR_REASON, rejected),)
