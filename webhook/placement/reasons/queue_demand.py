"""The pods that a queue must have room for: one pod, or those of a gang that start together."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from webhook.backends.backend import BatchNames
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.reasons.gang_request import GangRequest

_LONGEST_SHOWN = 63


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

    def mismatch(self, group: str) -> str:
        """Return why no pod of the gang starts if its PodGroup `group` needs more pods than it has; else nothing."""
        size, members = self.request.size, self.request.members
        if members <= size:
            return ""
        return f"PodGroup {cut(group, _LONGEST_SHOWN)} needs {members} pods, and the gang has {size}: it never starts"


@dataclass(frozen=True)
class Demand:
    """The pods that must have room in a queue: `pod` alone, or `least` pods of its gang, which start together."""

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
        """Return the pods by template, and the number of each."""
        return self.gang.sets if self.gang else ((self.pod, 1),)

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """Return the least that as many of them request as start together, by resource."""
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
        """Return the pods in words."""
        if self.gang is None:
            return "this pod"
        name = cut(self.gang.request.name, _LONGEST_SHOWN)
        return f"the {self.least} pods of gang {name}" if name else f"the {self.least} pods that start together"


def excess(requests: Mapping[str, int], most: Mapping[str, float], used: Mapping[str, int] | None = None) -> str:
    """Return by how much `requests` exceed `most`, with what is `used` already; empty if they do not."""
    for name, limit in most.items():
        amount, in_use = requests.get(name, 0), (used or {}).get(name, 0)
        if amount and in_use + amount > limit:
            beside = f"{amount_text(name, in_use)} + " if in_use else ""
            return f"{cut(name, _LONGEST_SHOWN)} {beside}{amount_text(name, amount)} of {_limit_text(name, limit)}"
    return ""


def _limit_text(name: str, limit: float) -> str:
    return amount_text(name, int(limit)) if limit == int(limit) else f"{limit:g}"
