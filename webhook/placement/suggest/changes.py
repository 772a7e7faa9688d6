"""Changes after which a pod that waits might fit, as data: they are what is tried, tested and told.

Here are those of nodes; those of the pod are in `webhook.placement.suggest.pod_changes`.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.ports import HostPort
from webhook.kube.taints import UNSCHEDULABLE
from webhook.placement.pod.pod_info import PodInfo


class Scenario(NamedTuple):
    """A pod that waits, and the nodes that it waits for."""

    pod: PodInfo
    nodes: Snapshot


class Change(Protocol):
    """One thing that would be otherwise."""

    def apply(self, scenario: Scenario) -> Scenario:
        """`scenario` as it would be then."""


@dataclass(frozen=True, slots=True)
class Free:
    """On the node so much less is requested, so many `pods` fewer run, and these ports are not taken."""

    node: str
    amounts: tuple[tuple[str, int], ...] = ()
    pods: int = 0
    ports: tuple[HostPort, ...] = ()

    def apply(self, scenario: Scenario) -> Scenario:
        """The pods that give the amounts up go on running, so that no more is freed than is told."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        freed = dict(self.amounts)
        requested = {resource: amount - freed.get(resource, 0) for resource, amount in info.requested.items()}
        running = tuple(self._without_ports(each) for each in info.pods[self.pods :])
        return Scenario(pod, _with_node(nodes, replace(info, pods=running, requested=requested)))

    def _without_ports(self, running: RunningPod) -> RunningPod:
        kept = tuple(port for port in running.host_ports if not any(port.conflicts(each) for each in self.ports))
        return running if len(kept) == len(running.host_ports) else replace(running, host_ports=kept)


@dataclass(frozen=True, slots=True)
class Evict:
    """These pods of the node, each of lower priority than the pod that waits, are gone."""

    node: str
    pods: tuple[tuple[str, str], ...]

    def apply(self, scenario: Scenario) -> Scenario:
        """With all that they took."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        gone = set(self.pods)
        staying = (running for running in info.pods if (running.namespace, running.name) not in gone)
        return Scenario(pod, _with_node(nodes, NodeInfo.of(info.node, staying)))


@dataclass(frozen=True, slots=True)
class Uncordon:
    """The node is schedulable again, and has lost the taint that says it is not."""

    node: str

    def apply(self, scenario: Scenario) -> Scenario:
        """As `kubectl uncordon` and the node lifecycle controller leave it."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        taints = tuple(taint for taint in info.node.taints if taint.key != UNSCHEDULABLE)
        node = replace(info.node, unschedulable=False, taints=taints)
        return Scenario(pod, _with_node(nodes, replace(info, node=node)))


def _with_node(nodes: Snapshot, info: NodeInfo) -> Snapshot:
    return updated(nodes, (info,), nodes.generation)
