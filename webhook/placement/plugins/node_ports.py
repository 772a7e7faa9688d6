"""NodePorts: the host ports of a pod must be free on the node."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.placement.framework.interface import Failure, Scope
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Evaluate only the nodes on which a requested port is in use.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports/node_ports.go
    """

    name = "NodePorts"
    scope = Scope.NODE

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes on which a host port of `pod` is in use."""
        taken = {
            row
            for wanted in in_time(pod.host_ports, expired)
            for port, row in nodes.load.host_ports.get((wanted.protocol, wanted.port), ())
            if wanted.conflicts(port)
        }
        if not taken:
            return ()
        rejected = np.zeros(len(nodes.nodes), dtype=np.bool_)
        rejected[list(taken)] = True
        return (Failure(ERR_REASON, rejected),)
