"""The gang that a pod asks for, and what the PodGroup of its scheduler says about it."""

from collections.abc import Iterable
from typing import NamedTuple

from webhook.backends.backend import BatchNames
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.placement.framework.result import Placement

_LONGEST_SHOWN = 32


class GangRequest(NamedTuple):
    """The gang that a pod asks to be in. `name` is empty if it has none, `size` 0 if it is not stated.

    `starts_whole`: `scheduler` binds the pods together or not at all. `members` is the number from which it does so by
    its PodGroup; 0 if that is not known. Kueue ends a start in part after `ends_after`, as `5m`; empty: it does not.
    """

    name: str
    size: int
    scheduler: str
    starts_whole: bool
    members: int = 0
    ends_after: str = ""

    @property
    def least(self) -> int:
        """Return the number of pods that fit from which the scheduler binds them: 1 if it binds them one by one."""
        if self.members:
            return min(self.members, self.size)
        return self.size if self.starts_whole else 1


def grouped(
    request: GangRequest, names: Iterable[BatchNames], namespace: str, snapshot: Snapshot
) -> GangRequest | None:
    """Return `request` with what `snapshot` knows of the PodGroup among `names`; None without a size.

    Without a size of its own the gang is as large as its PodGroup.
    """
    for each in names:
        if each.backend == "kueue" and each.starts_whole:
            if snapshot.kueue.looks_at_nodes(namespace, each.queue):
                return request._replace(starts_whole=True) if request.size else None
            request = request._replace(ends_after=pods_ready_timeout(snapshot))
        if each.group and (members := _members(each, namespace, snapshot)):
            return request._replace(size=request.size or members, members=members)
    return request if request.size else None


def _members(names: BatchNames, namespace: str, snapshot: Snapshot) -> int:
    """Return how many pods the PodGroup needs to start; 0 if that is not known."""
    groups = {
        "volcano": snapshot.volcano.groups,
        "kai": snapshot.kai.groups,
        "coscheduling": snapshot.pod_groups.coscheduling,
        "native": snapshot.pod_groups.native,
    }
    group = (groups.get(names.backend) or {}).get((namespace, names.group))
    return 0 if group is None else group.members


def pods_ready_timeout(snapshot: Snapshot) -> str:
    """Return the time after which Kueue evicts what it admitted unless all pods are ready; empty if it does not."""
    return snapshot.scheduler_evidence.pods_ready_timeout if snapshot.scheduler_evidence else ""


def partial_start(request: GangRequest, placement: Placement) -> tuple[str, ...]:
    """Return the warning at a pod of a gang that would start in part; none otherwise."""
    fit = placement.gang
    if fit is None or not fit.starts_in_part:
        return ()
    name = cut(fit.name, _LONGEST_SHOWN)
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
    shown = cut(scheduler, _LONGEST_SHOWN)
    if least <= 1:
        return f"scheduler {shown} starts pods one by one"
    return f"scheduler {shown} starts {least} of them without the others, as their PodGroup says"
