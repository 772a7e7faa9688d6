"""Small nodes, and the placement of a pod on them."""

from tests.support.objects.builders import PodBuilder
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Placement, Scheduler


def place(pod: PodBuilder, *nodes: NodeInfo) -> Placement:
    return Scheduler().place(pod.obj(), Snapshot.of(nodes))
