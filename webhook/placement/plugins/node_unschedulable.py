"""NodeUnschedulable: no pod goes to a cordoned node, unless it tolerates that."""

from collections.abc import Sequence

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.taints import NO_SCHEDULE, UNSCHEDULABLE, Taint
from webhook.placement.framework.interface import Failure
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) were unschedulable"

_TAINT = Taint(UNSCHEDULABLE, "", NO_SCHEDULE)


class NodeUnschedulable:
    """Rejects nodes with `spec.unschedulable`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go
    """

    name = "NodeUnschedulable"

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The unschedulable nodes, unless `pod` tolerates the taint of that name."""
        if pod.tolerations.tolerate(_TAINT):
            return ()
        return (Failure(ERR_REASON, nodes.unschedulable),)
