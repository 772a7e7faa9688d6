"""kube-scheduler's preemption in virtual time: the evicted pods, and the reserved room on nodes.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/executor.go, prepareCandidate
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from placement_planner.simulation.backlog import Group, Unit
from placement_planner.simulation.cluster import SimulatedCluster
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.pod.preemption import Nomination
from webhook.placement.preemption.default_preemption import chosen_by
from webhook.placement.scorer import PodSignature


@dataclass(frozen=True, slots=True)
class Choice:
    """A node, and the pods to evict there."""

    node: str
    victims: Sequence[RunningPod]


ChooseVictims = Callable[[Unit, PodSignature, Snapshot], Choice | None]
"""Returns what is evicted for a unit of one pod, which no node can take, or None."""


def victims_by(dice: random.Random) -> ChooseVictims:
    """Return the function that chooses victims as kube-scheduler does. `dice` makes its random choices."""

    def choose(unit: Unit, signature: PodSignature, snapshot: Snapshot) -> Choice | None:
        profile = unit.pods[0].template.scheduler.scheduler.profile
        info = signature.info.normalized_for(snapshot)
        if info.gates or not profile.preempts:
            return None
        found = chosen_by(dice, profile, info, snapshot, never)
        return Choice(found.node, found.victims) if found else None

    return choose


class Preemption:
    """The pods that wait until their victims on a node have ended.

    `changes` counts the changes after which other pods may preempt.
    """

    def __init__(self, cluster: SimulatedCluster, choose: ChooseVictims) -> None:
        self._cluster, self._choose = cluster, choose
        self._nominated: dict[Unit, RunningPod] = {}
        self._given_up: set[int] = set()
        self._names = 0
        self.changes = 0

    def is_nominated(self, unit: Unit) -> bool:
        """Return whether room on a node is reserved for `unit`."""
        return unit in self._nominated

    def signature_of(self, unit: Unit) -> PodSignature:
        """Return the signature of the pods of `unit`, with the node to which it is nominated."""
        signature, scheduler = unit.pods[0].template.signature, _scheduler_name(unit)
        pod, nomination = self._nominated.get(unit), Nomination(scheduler)
        if pod is not None:
            nomination = Nomination(scheduler, pod.node_name, pod.namespace, pod.name)
        if not self._cluster.snapshot.nominated or nomination == signature.info.nomination:
            return signature
        return PodSignature(signature.info._replace(nomination=nomination))

    def named(self, pod: RunningPod, started: float) -> RunningPod:
        """Return `pod`, which starts at `started`, with a unique name and its start time."""
        self._names += 1
        # A pod that has started at 0 would count as one that has not, and those of the cluster have started before.
        seconds = self._cluster.last_start + 1 + int(started)
        return pod._replace(name=f"{pod.name}-{self._names}", started_seconds=seconds)

    def victims_of(self, unit: Unit) -> Sequence[RunningPod]:
        """Return the pods to evict for `unit`, and nominate `unit` to their node.

        Units of lower priority lose their nomination to this node, and are tried again when a pod ends.
        """
        template = unit.pods[0].template
        found = self._choose(unit, self.signature_of(unit), self._cluster.snapshot)
        if found is None:
            if not self._waits(unit):
                self.forget(unit)
            return ()
        displaced = [
            other
            for other, pod in self._nominated.items()
            if pod.node_name == found.node and other.priority < unit.priority
        ]
        for each in (unit, *displaced):
            self.forget(each)
        name = _scheduler_name(unit)
        pod = self.named(template.running, 0)
        rare = pod.rare._replace(scheduler="" if name == DEFAULT_SCHEDULER else name)
        self._nominated[unit] = pod._replace(node_name=found.node, rare=rare)
        self._cluster.nominate(self._nominated.values())
        return [each for each in found.victims if not each.is_terminating]

    def _waits(self, unit: Unit) -> bool:
        pod = self._nominated.get(unit)
        return pod is not None and any(
            each.is_preempted and each.priority < unit.priority for each in self._cluster.pods_on(pod.node_name)
        )

    def forget(self, unit: Unit) -> None:
        """Release the reserved room of `unit`."""
        pod = self._nominated.pop(unit, None)
        if pod is not None:
            self._cluster.nominate(self._nominated.values())
            self._given_up.add(self._cluster.snapshot.rows[pod.node_name])
            self.changes += 1

    def given_up(self) -> set[int]:
        """Return the rows of the nodes on which reserved room was released since the last call."""
        found, self._given_up = self._given_up, set()
        return found


def _scheduler_name(unit: Unit) -> str:
    """Return the name of the scheduler of `unit`.

    If another kube-scheduler places the unit, return a name of that kube-scheduler.

    kube-scheduler only reserves room for its own pods.
    """
    template = unit.pods[0].template
    name, profile = template.signature.info.nomination.scheduler_name, template.scheduler.scheduler.profile
    return name if profile.carry_on or name in profile.scheduler_names else min(profile.scheduler_names)


def can_preempt(group: Group, freed: Sequence[NodeInfo]) -> bool:
    """Return false if the units of `group` certainly cannot preempt on any of the `freed` nodes."""
    if not group.template.scheduler.scheduler.profile.preempts:
        return False
    return any(group.has_room(_without_lower(each, group.template.priority)) for each in freed)


def _without_lower(info: NodeInfo, priority: int) -> NodeInfo:
    return NodeInfo.of(info.node, _not_lower(info, priority))


def _not_lower(info: NodeInfo, priority: int) -> Iterator[RunningPod]:
    return (each for each in info.pods if each.priority >= priority)
