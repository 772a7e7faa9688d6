"""Gangs of which only a part runs. The running pods hold cards and wait for the other pods."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement_reclaim.cluster import HoldingPod, Name, Objects, Raw, condition, seconds
from placement_reclaim.held import PARTIAL_GANG, Held, Owner, Remedy, Since
from webhook.cluster.batch import fields
from webhook.kube.names import ENDED_PHASES
from webhook.placement.reasons.gang_request import pods_ready_timeout


@dataclass
class _Members:
    """The pods of a gang. `lost` are the times at which members ended, began to end, or lost their node.

    `bare` is the number of bound pods without cards.
    """

    least: int
    running: list[HoldingPod] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    waiting: list[Raw] = field(default_factory=list)
    bare: int = 0
    has_completed: bool = False

    def add(self, pod: Raw, holding: HoldingPod | None, lost: Since | None) -> None:
        """Add a pod, as `holding` if it has cards. `lost` is since when its node is down or it should have ended."""
        end = lost.seconds if lost else seconds(pod, "metadata", "deletionTimestamp")
        if (phase := fields.text(pod, "status", "phase")) in ENDED_PHASES:
            self.has_completed |= phase == "Succeeded"
            self.lost += [when] if (when := _end_of(pod)) else []
        elif end:
            self.lost.append(end)
        elif holding:
            self.running.append(holding)
        elif fields.text(pod, "spec", "nodeName"):
            self.bare += 1
        else:
            self.waiting.append(pod)

    @property
    def is_partial(self) -> bool:
        """Return true if pods with cards run, but too few in all, none has completed, and none is exempt."""
        is_short = 0 < len(self.running) < self.least - self.bare
        return is_short and not self.has_completed and not any(pod.is_exempt for pod in self.running)


def partial_gangs(objects: Objects, holding: Mapping[Name, HoldingPod], lost: Mapping[Name, Since]) -> Iterator[Held]:
    """Yield the gangs that run with fewer pods than the minimum.

    `holding` are the pods that hold cards. `lost` has the time since which a bound pod should have ended or its node is
    down. A gang with a completed pod is left out, because its other pods end soon, too. Pods without cards count as
    members, such as a launcher.
    """
    found: dict[Name, _Members] = {}
    # No pod runs on a node that is gone.
    bound = {key: pod for key, pod in objects.pods.items() if fields.text(pod, "spec", "nodeName") in objects.nodes}
    for pods in (bound, objects.pending, objects.ended, objects.bare):
        for key, pod in pods.items():
            if gang := objects.gang_of(pod):
                found.setdefault(gang[0], _Members(gang[1])).add(pod, holding.get(key), lost.get(key))
    for gang_name, members in found.items():
        if members.is_partial:
            yield _held(gang_name, members, pods_ready_timeout(objects.snapshot))


def _end_of(pod: Raw) -> int:
    statuses = fields.items(pod, "status", "containerStatuses")
    ends = [seconds(each, "state", "terminated", "finishedAt") for each in statuses]
    return max(*ends, seconds(condition(pod, "DisruptionTarget"), "lastTransitionTime"), 0)


def _held(gang_name: Name, members: _Members, evicted_after: str) -> Held:
    """Return the row of a gang. It begins when the last pod was bound or lost, whichever is later."""
    (namespace, name), running, cards = gang_name, members.running, Counter[str]()
    for pod in running:
        cards.update(pod.cards)
    conditions = [(condition(pod.content, "PodScheduled"), pod.running.started_seconds) for pod in running]
    bound = max(seconds(each, "lastTransitionTime") or started for each, started in conditions)
    # A pod that a controller has made in place of a lost one is newer than the others.
    made = [seconds(each, "metadata", "creationTimestamp") for each in members.waiting]
    broken = max([0, *made, *members.lost])
    since = Since(max(bound, broken), is_least=broken > bound, is_known=bool(members.waiting or members.lost))
    remedies = [*dict.fromkeys(Owner.of(pod.content).remedy for pod in running)]
    others = f", {len(members.waiting)} wait" if members.waiting else ""
    end = f"; Kueue evicts it after {evicted_after}" if evicted_after else ""
    owners = remedies[0].text if len(remedies) == 1 else f"its {len(remedies)} owners"
    return Held(
        reason=PARTIAL_GANG,
        cards=cards,
        nodes=tuple(sorted({pod.running.node_name for pod in running})),
        namespace=namespace,
        name=name,
        since=since,
        why=f"{len(running) + members.bare} of {members.least} pods of gang {name} run{others}",
        remedy=Remedy(f"{owners}{end}", tuple(step for each in remedies for step in each.steps)),
        pods=tuple(pod.content for pod in running),
    )
