"""NodeUnschedulable: a pod needs a toleration to run on a cordoned node."""

from collections.abc import Sequence

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.pod.taints import NO_SCHEDULE, UNSCHEDULABLE, Taint, any_tolerates
from webhook.placement.framework.interface import Failure, Scope
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) were unschedulable"

_TAINT = Taint(UNSCHEDULABLE, "", NO_SCHEDULE)


class NodeUnschedulable:
    """Reject nodes with `spec.unschedulable`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go
    """

    name = "NodeUnschedulable"
    scope = Scope.FACTS

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the unschedulable nodes, unless `pod` tolerates the unschedulable taint."""
        if any_tolerates(pod.tolerations, _TAINT):
            return ()
        return (Failure(ERR_REASON, nodes.unschedulable),)
