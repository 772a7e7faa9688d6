"""The nodes offer all devices that they have."""

from collections.abc import Iterator

from placement_doctor.check import Finding, check, warning
from placement_doctor.cluster import Cluster
from placement_doctor.nodes import nodes_of
from placement_doctor.source import Source
from webhook.placement.framework.node_states import unhealthy_devices


@check(
    "`kubectl describe node NODE`, and the log of the device plugin on that node",
    needs={Source.NODES, Source.POLICY},
)
def node_devices(cluster: Cluster) -> Iterator[Finding]:
    """Devices of a node are not healthy, or its device plugin has not registered: the node offers fewer than it has.

    Pods that need them wait, and are not denied.
    """
    accelerators = [each for policy in cluster.policies for each in policy.spec.accelerators]
    for node, resource, healthy, total in unhealthy_devices(nodes_of(cluster), accelerators):
        what = f"{healthy} of {total} {resource} are healthy"
        remedy = f"`kubectl describe node {node}`, and the log of the device plugin on the node"
        yield warning(f"Node {node}: status.allocatable", what, remedy)
