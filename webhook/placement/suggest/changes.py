"""Changes of nodes, as data, after which a pod may fit. Those of pods are in `pod_changes`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from webhook.cluster.node_info import NO_PRIORITY, NodeInfo, RunningPod, key_of
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
class NodeChange(ABC):
    """A change of one node."""

    node: str

    def apply(self, scenario: Scenario) -> Scenario:
        """Return `scenario` with the changed node."""
        pod, nodes = scenario
        return Scenario(pod, updated(nodes, (self._changed(nodes.nodes[nodes.rows[self.node]]),), nodes.generation))

    @abstractmethod
    def _changed(self, info: NodeInfo) -> NodeInfo: ...


@dataclass(frozen=True, slots=True)
class Free(NodeChange):
    """Free amounts of resources, a number of pods and host ports on the node, but nothing else of these pods."""

    amounts: tuple[tuple[str, int], ...] = ()
    pods: int = 0
    ports: tuple[HostPort, ...] = ()

    def _changed(self, info: NodeInfo) -> NodeInfo:
        freed = dict(self.amounts)
        requested = {resource: max(amount - freed.get(resource, 0), 0) for resource, amount in info.requested.items()}
        running = tuple(self._without_ports(each) for each in info.pods[self.pods :])
        lowest = min([each.priority for each in running], default=NO_PRIORITY)
        return info._replace(pods=running, requested=requested, lowest_priority=lowest)

    def _without_ports(self, running: RunningPod) -> RunningPod:
        kept = tuple(port for port in running.rare.host_ports if not any(port.conflicts(each) for each in self.ports))
        if len(kept) == len(running.rare.host_ports):
            return running
        return running._replace(rare=running.rare._replace(host_ports=kept))


@dataclass(frozen=True, slots=True)
class Evict(NodeChange):
    """Remove these pods from the node. Each has a lower priority than the pending pod."""

    pods: tuple[tuple[str, str], ...]

    def _changed(self, info: NodeInfo) -> NodeInfo:
        gone = set(self.pods)
        staying = (running for running in info.pods if key_of(running) not in gone)
        return NodeInfo.of(info.node, staying)


@dataclass(frozen=True, slots=True)
class Uncordon(NodeChange):
    """Make the node schedulable, and remove its unschedulable taint, as the node lifecycle controller does."""

    def _changed(self, info: NodeInfo) -> NodeInfo:
        taints = tuple(taint for taint in info.node.taints if taint.key != UNSCHEDULABLE)
        return info._replace(node=replace(info.node, unschedulable=False, taints=taints))
