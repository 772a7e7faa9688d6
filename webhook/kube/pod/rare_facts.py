"""The facts that few running pods have. The others share one object."""

from functools import lru_cache
from typing import NamedTuple

from webhook.kube.pod.ports import HostPort


class RareFacts(NamedTuple):
    """Facts that few running pods have.

    `left_out` are the parts that are too large, and are not in it, each with the namespace whose pods depend on it.
    `deletion_seconds` is when its deletion ends, in Unix seconds, 0 if it is not being deleted. `is_preempted`: it is
    being deleted because kube-scheduler has preempted it. `waiting_reason` is why it does not start, such as
    `ImagePullBackOff`, or empty if it runs or is being started. `scheduler` is the name of its scheduler, or empty for
    the default one. `workload` is the Workload of Kueue to which it belongs, or empty.
    """

    left_out: tuple[tuple[str, str], ...] = ()
    deletion_seconds: int = 0
    is_preempted: bool = False
    waiting_reason: str = ""
    host_ports: tuple[HostPort, ...] = ()
    scheduler: str = ""
    workload: str = ""


USUAL = RareFacts()


# Users choose the names; a cluster has a few schedulers.
@lru_cache(64)
def usual_of(scheduler: str) -> RareFacts:
    """Return what most pods of `scheduler` share."""
    return RareFacts(scheduler=scheduler) if scheduler else USUAL
