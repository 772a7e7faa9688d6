"""Suggestions for pods that are only useful together, each verified for all of these pods."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.result import Placement, Remedy
from webhook.placement.gang.domains import members_on
from webhook.placement.gang.gang import gang_placement
from webhook.placement.gang.gang_count import Gang
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.suggest.suggestion_text import ASK_FOR, CAN_TAKE
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod

_NODES_WOULD_FIT = re.compile(rf"^\d+ nodes? (would fit|{CAN_TAKE})")


@dataclass(frozen=True, slots=True)
class Group:
    """The `number` pods like `pod` that need nodes of `snapshot`.

    Other pods of the group are already on `own_nodes`.
    """

    scheduler_of: Callable[[PodSignature], Scheduler]
    pod: WaitingPod
    number: int
    snapshot: Snapshot
    own_nodes: Collection[str]
    expired: Expired

    def place(self, pod: WaitingPod) -> Placement:
        """Return the placement of the first pod if all pods of the group were like `pod`, or Unknown if not all fit."""
        first, number = self._placed(pod, self.snapshot)
        return first if number == self.number else Placement.unknown("not all pods of the group fit")

    def verified(self, placement: Placement) -> Placement:
        """Return `placement` with only the suggestions after which the whole group, or without gates any pod, fits."""
        if not placement.suggestions or (self.number <= 1 and not self.own_nodes):
            return placement
        counted = [(each, self._fitting(each)) for each in placement.remedies]
        remedies = tuple(replace(each, text=self._text(each, number)) for each, number in counted if number)
        return replace(placement, suggestions=tuple(each.text for each in remedies), remedies=remedies)

    def _text(self, remedy: Remedy, number: int) -> str:
        """Return the text of the suggestion with the `number` of pods that would fit."""
        of_all = f" of {self.number}" if number < self.number else ""
        fit = f"{number}{of_all} pod{'' if self.number == 1 else 's'} would fit"
        if remedy.text.startswith(ASK_FOR):
            return f"{remedy.text.partition(': ')[0]}: {fit}"
        return _NODES_WOULD_FIT.sub(fit, remedy.text)

    def _fitting(self, remedy: Remedy) -> int:
        """Return the number of pods that fit with `remedy` and without gates, or 0 if not all fit."""
        info, nodes = remedy.change(self.pod.signature.info, self.snapshot)
        if nodes is not self.snapshot and remedy.node in self.own_nodes:
            # The group itself can hold the room that would be freed there.
            return 0
        _, number = self._placed(self.pod.with_info(info._replace(gates=0)), nodes)
        is_of_gates = self.pod.signature.info.gates > info.gates
        return number if is_of_gates or number == self.number else 0

    def _placed(self, pod: WaitingPod, nodes: Snapshot) -> tuple[Placement, int]:
        """Return the placement on `nodes` of the first pod of a group of pods like `pod`, and the number that fit."""
        scheduler = self.scheduler_of(pod.signature)
        first = scheduler.answer_alone(pod.signature, nodes, self.expired)
        together = Gang(GangKey(pod.running.namespace, "", ""), self.number)
        found = gang_placement(scheduler, together, pod, first, AssumedPods[Any](nodes), expired=self.expired)
        if found.verdict == "Feasible":
            return first, self.number
        return first, found.gang.fit if found.gang and found.gang.is_complete else 0


def group_of_gang(
    gang: Gang,
    pod: WaitingPod,
    scheduler_of: Callable[[PodSignature], Scheduler],
    assumed: AssumedPods[Any],
    expired: Expired,
) -> Group:
    """Return the group of pods of a gang that are neither running nor in `assumed`. They are all like `pod`."""
    before = assumed.before_pod(pod.preemption)
    own_nodes = [info.node.name for info in before.nodes if gang.key in info.gangs]
    left = max(1, gang.size - members_on(before, gang.key))
    return Group(scheduler_of, pod, left, before, own_nodes, expired)
