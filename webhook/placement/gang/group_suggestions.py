"""Suggestions for pods that come together: each is verified for all of them, since one more pod helps no group.

A suggestion is found for one pod beside the others. It can name what those hold, or make them differ from the pod.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.framework.result import Placement, Remedy
from webhook.placement.gang.gang import Gang, fit_together, members_on
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.waiting_pods import WaitingPod


@dataclass(frozen=True, slots=True)
class Group:
    """Pods like `pod`, of which `number` need a node of `snapshot`.

    So many of them as they are, less `missing`, have nodes; `own_nodes` are those that pods of the group are on.
    """

    scheduler_of: Callable[[PodSignature], Scheduler]
    pod: WaitingPod
    number: int
    missing: int
    snapshot: Snapshot
    own_nodes: Collection[str]
    expired: Expired

    def place(self, pod: WaitingPod) -> Placement:
        """Return the placement of the first of the group if all were like `pod`; Unknown unless all of them fit."""
        scheduler = self.scheduler_of(pod.signature)
        try:
            if not fit_together(scheduler, pod, self.number, self.snapshot, self.expired):
                return Placement.unknown("not all pods of the group fit")
        except DeadlineNearError as error:
            return Placement.unknown(str(error))
        return scheduler.answer_alone(pod.signature, self.snapshot, self.expired)

    def verified(self, placement: Placement) -> Placement:
        """Return `placement`, that of a pod of the group, with those of its suggestions that make all of them fit."""
        if not placement.suggestions or (self.number <= 1 and not self.own_nodes):
            return placement
        remedies = tuple(each for each in placement.remedies if self._helps(each))
        return replace(placement, suggestions=tuple(each.text for each in remedies), remedies=remedies)

    def _helps(self, remedy: Remedy) -> bool:
        if remedy.change is None:
            # The node has been changed beside the others, which have nodes: the pod is the last one.
            return self.missing == 1 and remedy.node not in self.own_nodes
        return self.place(self.pod.with_info(remedy.change(self.pod.signature.info))).verdict == "Feasible"


def group_of_gang(
    gang: Gang,
    pod: WaitingPod,
    scheduler_of: Callable[[PodSignature], Scheduler],
    assumed: AssumedPods[Any],
    expired: Expired,
) -> Group:
    """Return the pods of a gang like `pod` that have no place among the pods that run and those with `assumed`."""
    before = assumed.before_pod(pod.preemption)
    own_nodes = [info.node.name for info in before.nodes if gang.key in info.gangs]
    left = max(1, gang.size - members_on(before, gang.key))
    return Group(scheduler_of, pod, left, left, before, own_nodes, expired)
