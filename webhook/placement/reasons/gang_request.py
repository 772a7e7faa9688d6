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
    its PodGroup; 0 if that is not known.
    """

    name: str
    size: int
    scheduler: str
    starts_whole: bool
    members: int = 0

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
        if each.backend == "kueue" and each.starts_whole and snapshot.kueue.looks_at_nodes(namespace, each.queue):
            return request._replace(starts_whole=True) if request.size else None
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


def partial_start(request: GangRequest, placement: Placement) -> tuple[str, ...]:
    """Return the warning at a pod of a gang that would start in part; none otherwise."""
    fit = placement.gang
    if fit is None or not fit.starts_in_part:
        return ()
    name = cut(fit.name, _LONGEST_SHOWN)
    gang = f"gang {name}" if name else "the gang"
    effect = "would start and hold what they request while the others wait, and two such gangs can deadlock"
    return (f"{fit.fit} of the {fit.size} pods of {gang} {effect}: {starts_text(request.scheduler, fit.least)}",)


def starts_text(scheduler: str, least: int) -> str:
    """Return how `scheduler` starts the pods of a gang that it does not start whole: from `least` of them on."""
    shown = cut(scheduler, _LONGEST_SHOWN)
    if least <= 1:
        return f"scheduler {shown} starts pods one by one"
    return f"scheduler {shown} starts {least} of them without the others, as their PodGroup says"
