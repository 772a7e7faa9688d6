"""Changes of nodes after which a pending pod may fit, as data.

Changes of the pod are in `webhook.placement.suggest.pod_changes`.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.pod.ports import HostPort
from webhook.kube.pod.taints import UNSCHEDULABLE
from webhook.placement.pod.pod_info import PodInfo


class Scenario(NamedTuple):
    """A pending pod, and the nodes that it is placed on."""

    pod: PodInfo
    nodes: Snapshot


class Change(Protocol):
    """One change of a scenario."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return `scenario` with the change applied."""


@dataclass(frozen=True, slots=True)
class Free:
    """Free amounts of resources, a number of pods and host ports on the node."""

    node: str
    amounts: tuple[tuple[str, int], ...] = ()
    pods: int = 0
    ports: tuple[HostPort, ...] = ()

    def apply(self, scenario: Scenario) -> Scenario:
        """Reduce the requested amounts, at most to zero, without removing their pods: nothing else is freed."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        freed = dict(self.amounts)
        requested = {resource: max(amount - freed.get(resource, 0), 0) for resource, amount in info.requested.items()}
        running = tuple(self._without_ports(each) for each in info.pods[self.pods :])
        return Scenario(pod, _with_node(nodes, replace(info, pods=running, requested=requested)))

    def _without_ports(self, running: RunningPod) -> RunningPod:
        kept = tuple(port for port in running.host_ports if not any(port.conflicts(each) for each in self.ports))
        return running if len(kept) == len(running.host_ports) else replace(running, host_ports=kept)


@dataclass(frozen=True, slots=True)
class Evict:
    """Remove these pods of the node, each of lower priority than the pending pod."""

    node: str
    pods: tuple[tuple[str, str], ...]

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the pods and free all of their resources."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        gone = set(self.pods)
        staying = (running for running in info.pods if (running.namespace, running.name) not in gone)
        return Scenario(pod, _with_node(nodes, NodeInfo.of(info.node, staying)))


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Make the node schedulable, and remove its unschedulable taint."""

    node: str

    def apply(self, scenario: Scenario) -> Scenario:
        """Change the node as `kubectl uncordon` and the node lifecycle controller do."""
        pod, nodes = scenario
        info = nodes.nodes[nodes.rows[self.node]]
        taints = tuple(taint for taint in info.node.taints if taint.key != UNSCHEDULABLE)
        node = replace(info.node, unschedulable=False, taints=taints)
        return Scenario(pod, _with_node(nodes, replace(info, node=node)))


def _with_node(nodes: Snapshot, info: NodeInfo) -> Snapshot:
    return updated(nodes, (info,), nodes.generation)
