"""Gangs of which only a part runs. The running pods hold cards and wait for the other pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from placement_reclaim.classes.pods import is_exempt
from placement_reclaim.cluster import HoldingPod, Raw, condition, full_name, seconds
from placement_reclaim.held import PARTIAL_GANG, Held, Since
from placement_reclaim.owners import Owner
from webhook.backends.registry import batch_names_of, queueing_backend_of
from webhook.cluster.batch import fields
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_SCHEDULER, ENDED_PHASES
from webhook.kube.pod.gang_key import GANG, GANG_SIZE, gangs_of
from webhook.placement.reasons.gang_request import pod_group_of, pods_ready_timeout
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class GangOf:
    """Finds the gang of a pod: the PodGroup of its scheduler, or that of the annotations with a size."""

    snapshot: Snapshot
    policy: Policy

    def __call__(self, pod: Raw) -> tuple[tuple[str, str], int] | None:
        """Return namespace and name of the gang of `pod`, and its minimum number of pods, or None without a gang."""
        namespace = full_name(pod)[0]
        scheduler = fields.text(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        for names in batch_names_of(pod, queueing_backend_of(self.policy.spec, scheduler)):
            group = pod_group_of(names, namespace, self.snapshot)
            if group is not None:
                return ((namespace, group.name), group.members) if group.members > 1 else None
        annotations = fields.texts(pod, "metadata", "annotations")
        for key in gangs_of(namespace, pod["metadata"]):
            size = annotations.get(key.annotation.removesuffix(GANG).removesuffix(GANG_SIZE) + GANG_SIZE, "")
            if size.isdecimal() and int(size) > 1:
                return (namespace, key.name), int(size)
        return None


@dataclass
class _Members:
    least: int
    running: list[HoldingPod] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    """When members ended, began to end, or lost their node."""
    waiting: list[Raw] = field(default_factory=list)
    bare: int = 0
    """The number of bound pods without cards."""
    has_completed: bool = False

    def add(self, pod: HoldingPod, lost: Since | None) -> None:
        """Add a bound pod. `lost` is the time at which it was lost, or None if it was not lost."""
        if lost is not None or pod.running.is_terminating:
            self.lost.append(lost.seconds if lost else pod.running.deletion_seconds)
        else:
            self.running.append(pod)

    def add_ended(self, pod: Raw) -> None:
        """Add a pod that has ended."""
        self.has_completed |= fields.text(pod, "status", "phase") == "Succeeded"
        self.lost.append(_end_of(pod))

    def add_bare(self, pod: Raw) -> None:
        """Add a pod without cards, such as a launcher."""
        phase = fields.text(pod, "status", "phase")
        if phase in ENDED_PHASES:
            self.has_completed |= phase == "Succeeded"
        elif end := seconds(pod, "metadata", "deletionTimestamp"):
            self.lost.append(end)
        elif fields.text(pod, "spec", "nodeName"):
            self.bare += 1
        else:
            self.waiting.append(pod)

    @property
    def is_partial(self) -> bool:
        """Return true if pods with cards run, but too few in all, none has completed, and none is exempt."""
        is_short = 0 < len(self.running) < self.least - self.bare
        return is_short and not self.has_completed and not any(is_exempt(pod) for pod in self.running)


def partial_gangs(
    pods: Iterable[HoldingPod],
    pending: Iterable[Raw],
    ended: Iterable[Raw],
    bare: Iterable[Raw],
    lost: Mapping[tuple[str, str], Since],
    gang_of: GangOf,
) -> Iterator[Held]:
    """Yield the gangs that run with fewer pods than the minimum.

    `bare` are the pods without cards, which count as members. `lost` has the time since which a bound pod should have
    ended or its node is down. A gang with a completed pod is left out, because its other pods end soon, too.
    """
    found: dict[tuple[str, str], _Members] = {}

    def members_of(pod: Raw) -> _Members:
        gang = gang_of(pod)
        return _Members(0) if gang is None else found.setdefault(gang[0], _Members(gang[1]))

    for pod in pods:
        members_of(pod.content).add(pod, lost.get(full_name(pod.content)))
    for content in pending:
        members_of(content).waiting.append(content)
    for content in ended:
        members_of(content).add_ended(content)
    for content in bare:
        members_of(content).add_bare(content)
    for (namespace, name), members in found.items():
        if members.is_partial:
            yield _held(namespace, name, members, pods_ready_timeout(gang_of.snapshot))


def _end_of(pod: Raw) -> int:
    statuses = fields.items(pod, "status", "containerStatuses")
    ends = [seconds(each, "state", "terminated", "finishedAt") for each in statuses]
    return max(*ends, seconds(condition(pod, "DisruptionTarget"), "lastTransitionTime"), 0)


def _bound_at(pod: HoldingPod) -> int:
    return seconds(condition(pod.content, "PodScheduled"), "lastTransitionTime") or pod.running.started_seconds


def _held(namespace: str, name: str, members: _Members, evicted_after: str) -> Held:
    """Return the row of a gang. It begins when the last pod was bound or lost, whichever is later."""
    running = members.running
    bound = max(map(_bound_at, running))
    # A pod that a controller has made in place of a lost one is newer than the others.
    made = max([seconds(each, "metadata", "creationTimestamp") for each in members.waiting], default=0)
    broken = max([made, *members.lost])
    since = Since(max(bound, broken), is_least=broken > bound, is_known=bool(members.waiting or members.lost))
    cards = Counter[str]()
    for pod in running:
        cards.update(pod.cards)
    owners: Sequence[Owner] = tuple(dict.fromkeys(Owner.of(pod.content) for pod in running))
    others = f", {len(members.waiting)} wait" if members.waiting else ""
    end = f"; Kueue evicts it after {evicted_after}" if evicted_after else ""
    return Held(
        reason=PARTIAL_GANG,
        cards=cards,
        nodes=tuple(sorted({pod.running.node_name for pod in running})),
        namespace=namespace,
        name=name,
        since=since,
        why=f"{len(running) + members.bare} of {members.least} pods of gang {name} run{others}",
        frees=f"delete {owners[0]}{end}" if len(owners) == 1 else f"its {len(owners)} owners{end}",
        steps=tuple(each.step for each in owners),
        pods=tuple(pod.content for pod in running),
        returns=any(each.returns for each in owners),
    )
