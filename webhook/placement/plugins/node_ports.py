"""NodePorts: a host port is taken once on a node."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.placement.framework.interface import Failure
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Looks only at the nodes where one of the wanted ports is taken.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports/node_ports.go
    """

    name = "NodePorts"

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The nodes where a host port of `pod` is taken already."""
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
