"""SchedulingGates: a gated pod is not scheduled."""

from webhook.placement.pod.pod_info import PodInfo

# The API server's words in the PodScheduled condition of a gated pod, which kube-scheduler ignores.
BLOCKED = "Scheduling is blocked due to non-empty scheduling gates"


class SchedulingGates:
    """Keep a pod with a gate out of the scheduling queue.

    A gate may wait for another cluster, a quota or new nodes, and the controller that removes it may restrict the
    pod's nodes first. So the only prediction for a gated pod is that it waits.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, and
    pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition
    """

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> str:
        """Return why `pod` does not enter the scheduling queue; empty if it does."""
        return BLOCKED if pod.is_gated else ""
