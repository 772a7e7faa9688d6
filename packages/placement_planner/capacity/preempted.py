"""The running pods that kube-scheduler would preempt for a pod that no node can take."""

from collections.abc import Collection
from typing import NamedTuple

from placement_planner.capacity.moves import Placer, PodToPlace, without_pods
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot

# Each is evaluated by itself; kube-scheduler evaluates a part of the nodes, too.
_MOST_NODES = 16


class Preempted(NamedTuple):
    """The `pods` of `node` that make room for a pod of higher priority, the highest priority first."""

    node: str
    pods: tuple[RunningPod, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the namespaces and names of the pods."""
        return tuple(f"{each.namespace}/{each.name}" for each in self.pods)

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """Return what kube-scheduler minimizes, without PodDisruptionBudgets, and the name of the node.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption
        """
        priorities = [each.priority for each in self.pods]
        return max(priorities), sum(priorities), len(priorities), self.node


def preempted_for(pod: PodToPlace, snapshot: Snapshot, spared: Collection[str], placer: Placer) -> Preempted | None:
    """Return the pods that kube-scheduler would preempt for `pod` on a node other than `spared`, or None.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    SelectVictimsOnNode
    """
    preemption = pod.signature.info.preemption.normalized_for(snapshot)
    lower = {
        info.node.name: found
        for info in snapshot.nodes
        if info.node.name not in spared
        and (found := [each for each in info.pods if preemption.can_preempt(each.priority)])
    }
    without = without_pods(snapshot, {node: {_key(each) for each in found} for node, found in lower.items()})
    feasible = pod.feasible(placer, without)
    candidates = [node for node in lower if feasible[snapshot.rows[node]]][:_MOST_NODES]
    choices = [_on_node(pod, snapshot, node, lower[node], placer) for node in candidates]
    return min((each for each in choices if each is not None), key=lambda each: each.cost, default=None)


def _on_node(
    pod: PodToPlace, snapshot: Snapshot, node: str, lower: list[RunningPod], placer: Placer
) -> Preempted | None:
    """Return the pods of `lower` priority on `node` that must go; of several, those with the highest priority stay."""
    victims: list[RunningPod] = []
    gone = {_key(each) for each in lower}
    if not pod.fits(placer, without_pods(snapshot, {node: gone}), node):
        return None
    for each in sorted(lower, key=lambda each: -each.priority):
        gone.discard(_key(each))
        if not pod.fits(placer, without_pods(snapshot, {node: gone}), node):
            gone.add(_key(each))
            victims.append(each)
    return Preempted(node, tuple(victims)) if victims else None


def _key(pod: RunningPod) -> tuple[str, str]:
    return pod.namespace, pod.name
