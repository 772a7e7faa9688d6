"""The gang that a pod asks for, what the PodGroup of its scheduler says about it, and what it demands of a queue."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest
from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.framework.result import Placement
from webhook.placement.pod.pod_info import PodInfo

_LONGEST_NAME = 32
_LONGEST_SHOWN = 63


def grouped(
    request: GangRequest, names: Iterable[BatchNames], namespace: str, snapshot: Snapshot
) -> GangRequest | None:
    """Return `request` with what `snapshot` knows of the PodGroup among `names`, or None if there is no size.

    Without a size of its own the gang is as large as its PodGroup.
    """
    for each in names:
        if each.backend == "kueue" and each.starts_whole:
            if snapshot.kueue.looks_at_nodes(namespace, each.queue):
                return request._replace(starts_whole=True) if request.size else None
            request = request._replace(ends_after=pods_ready_timeout(snapshot))
        group = pod_group_of(each, namespace, snapshot)
        if group is not None and group.members:
            return request._replace(size=request.size or group.members, members=group.members, group=group)
        if group is not None:
            request = request._replace(starts_whole=request.starts_whole and not group.is_basic, group=group)
    return request if request.size else None


def group_named(names: Iterable[BatchNames], namespace: str, snapshot: Snapshot) -> PodGroup | None:
    """Return the PodGroup among `names`, or None if there is none, or it is not known."""
    return next((group for each in names if (group := pod_group_of(each, namespace, snapshot))), None)


def pod_group_of(names: BatchNames, namespace: str, snapshot: Snapshot) -> PodGroup | None:
    """Return the PodGroup that `names` has, or None if it has none, or it is not known."""
    groups = {
        "volcano": snapshot.volcano.groups,
        "kai": snapshot.kai.groups,
        "coscheduling": snapshot.pod_groups.coscheduling,
        "native": snapshot.pod_groups.native,
    }
    return (groups.get(names.backend) or {}).get((namespace, names.group)) if names.group else None


def pods_ready_timeout(snapshot: Snapshot) -> str:
    """Return the time after which Kueue evicts what it admitted unless all pods are ready, or "" if it does not."""
    return snapshot.scheduler_evidence.pods_ready_timeout if snapshot.scheduler_evidence else ""


def partial_start(request: GangRequest, placement: Placement) -> tuple[str, ...]:
    """Return the warning at a pod of a gang that would start in part; none otherwise."""
    fit = placement.gang
    if fit is None or not fit.starts_in_part:
        return ()
    name = cut(fit.name, _LONGEST_NAME)
    gang = f"gang {name}" if name else "the gang"
    effect = effect_text("gangs", fit.ends_after)
    return (f"{fit.fit} of the {fit.size} pods of {gang} {effect}: {starts_text(request.scheduler, fit.least)}",)


def effect_text(groups: str, ends_after: str) -> str:
    """Return what a start in part does, among `groups` such as gangs, until Kueue ends it after `ends_after`."""
    end = f"and two such {groups} can deadlock"
    if ends_after:
        end = f"until Kueue evicts them after {ends_after} (waitForPodsReady)"
    return f"would start and hold what they request while the others wait, {end}"


def starts_text(scheduler: str, least: int) -> str:
    """Return how `scheduler` starts the pods of a gang that it does not start whole: from `least` of them on."""
    shown = cut(scheduler, _LONGEST_NAME)
    if least <= 1:
        return f"scheduler {shown} starts pods one by one"
    return f"scheduler {shown} starts {least} of them without the others, as their PodGroup says"


@dataclass(frozen=True)
class GangDemand:
    """A gang that starts with `request.least` pods: `sets` are its pods by template, and their number."""

    request: GangRequest
    sets: tuple[tuple[PodInfo, int], ...]

    @classmethod
    def of_pod(cls, request: GangRequest, pod: PodInfo) -> "GangDemand":
        """Return the gang of `pod`, whose others are taken to be like it."""
        return cls(request, ((pod, request.size),))

    @property
    def pods(self) -> int:
        """Return the number of its pods."""
        return sum(count for _, count in self.sets)


@dataclass(frozen=True)
class Demand:
    """The pods that must have room in a queue: only `pod`, or the `least` pods of its gang that start together."""

    pod: PodInfo
    gang: GangDemand | None = None
    least: int = 1

    @classmethod
    def of(cls, names: BatchNames, pod: PodInfo, gang: GangDemand) -> "Demand":
        """Return what `pod` of `gang` needs of the queue in `names`. Kueue admits all pods of a gang at once."""
        if not names.starts_whole:
            return cls(pod)
        return cls(pod, gang, gang.pods if names.backend == "kueue" else min(gang.request.least, gang.pods))

    @property
    def sets(self) -> tuple[tuple[PodInfo, int], ...]:
        """Return the pod of each template, and how many there are of it."""
        return self.gang.sets if self.gang else ((self.pod, 1),)

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """Return the smallest request of the pods that start together, by resource."""
        found: Counter[str] = Counter()
        sets = [(dict(pod.requests), count) for pod, count in self.sets]
        for name in {name for requests, _ in sets for name in requests}:
            left = self.least
            for amount, count in sorted((requests.get(name, 0), count) for requests, count in sets):
                taken = min(left, count)
                found[name] += taken * amount
                left -= taken
        return found

    def excess(self, most: Mapping[str, float], used: Mapping[str, int], snapshot: Snapshot) -> str:
        """Return by how much they exceed `most` with what is `used`, which includes those of them that run.

        Empty if they do not.
        """
        found = excess(self.requests, most, used)
        if not found or self.gang is None or excess(self.requests, most):
            return found
        namespace, name = self.pod.inter_pod.namespace, self.gang.request.name
        gangs = (gang for info in snapshot.nodes for gang in info.gangs)
        running = sum((gang.namespace, gang.name) == (namespace, name) for gang in gangs)
        left = max(1, self.least - running) / self.least
        return excess({resource: round(amount * left) for resource, amount in self.requests.items()}, most, used)

    def __str__(self) -> str:
        if self.gang is None:
            return "this pod"
        name = cut(self.gang.request.name, _LONGEST_SHOWN)
        return f"the {self.least} pods of gang {name}" if name else f"the {self.least} pods that start together"


def excess(requests: Mapping[str, int], most: Mapping[str, float], used: Mapping[str, int] | None = None) -> str:
    """Return by how much `requests` exceed `most`, with what is `used` already, or an empty string if they do not."""
    for name, limit in most.items():
        amount, in_use = requests.get(name, 0), (used or {}).get(name, 0)
        if amount and in_use + amount > limit:
            beside = f"{amount_text(name, in_use)} + " if in_use else ""
            shown = amount_text(name, int(limit)) if limit == int(limit) else f"{limit:g}"
            return f"{cut(name, _LONGEST_SHOWN)} {beside}{amount_text(name, amount)} of {shown}"
    return ""
