"""SchedulingGates: a gated pod is not scheduled."""

from webhook.placement.pod.pod_info import PodInfo

# The API server's words, in the condition PodScheduled of a gated pod: kube-scheduler never takes such a pod up.
BLOCKED = "Scheduling is blocked due to non-empty scheduling gates"


class SchedulingGates:
    """Keeps a pod back as long as it has a gate, whatever the nodes are like.

    The gates may stand for another cluster, another quota or nodes still to come, and whoever lifts them may narrow
    the pod's nodes down first; so of a gated pod nothing is foretold but that it waits.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, and
    pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition
    """

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> str:
        """Why `pod` does not enter the scheduling queue; empty: it does."""
        return BLOCKED if pod.is_gated else ""
