"""Count the pods of a gang that fit together: anywhere, or in one topology domain."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from webhook.backends.references import Within
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.result import Placement
from webhook.placement.framework.together import Together
from webhook.placement.gang.domains import (
    domains_together,
    follows_itself,
    in_domain,
    is_countable,
    nodes_of,
    with_first,
)
from webhook.placement.gang.further_pods import Further, further_pods
from webhook.placement.pod.network_limit import with_hyper_nodes
from webhook.placement.replicas.independent_nodes import are_nodes_independent
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.pending_placement import WaitingPod

_NOT_KNOWN = Further(0, None, is_complete=False)


@dataclass(frozen=True, slots=True)
class Gang:
    """The gang of a pod: `size` pods with `key`. Its scheduler binds at least `least` of them, or none.

    `ends_after` is the time after which Kueue evicts a gang that has started only in part, or empty if it does not.
    `within` is the request that its pods run in one topology domain, or None. `is_stated` is false if only the PodGroup
    has the size: its pods can differ.
    """

    key: GangKey
    size: int
    least: int = 1
    ends_after: str = ""
    within: Within | None = None
    is_stated: bool = True


class Count(NamedTuple):
    """The further pods of a gang that fit, and the placement `own` of the first of them.

    `together` are the domains, if the gang runs in one.
    """

    own: Placement
    further: Further
    together: Together | None = None


def count_pods(
    scheduler: Scheduler, gang: Gang, pod: WaitingPod, own: Placement, snapshot: Snapshot, left: int, expired: Expired
) -> Count:
    """Return the count of `left` further pods like `pod` of `gang` that fit on `snapshot`; the first has `own`."""
    within, info, together, follow = gang.within, pod.signature.info, None, False
    if within is not None:
        snapshot = with_hyper_nodes(snapshot, within.key)
        follow = follows_itself(info, within.key, snapshot)
        if is_countable(scheduler, info, counts_all=follow or within.is_native):
            together = domains_together(scheduler, pod, gang.key, within, snapshot, gang.size, left, expired)
    if within is None or not within.is_required:
        return Count(own, further_pods(scheduler, pod, own, snapshot, left, expired), together)
    if together is None:
        return Count(own, _NOT_KNOWN)
    if follow:
        return _by_affinity(scheduler, pod, own, snapshot, left, expired, together)
    possible = tuple(each.path for each in together.allowed if each.fits >= gang.least)
    if within.is_of_least and len(possible) > len(together.with_room) > 0:
        return Count(own, _NOT_KNOWN, replace(together, first=possible))
    chosen = together.tightest
    if chosen is None:
        return Count(own, Further(0, replace(own, verdict="Waiting", node=None)), together)
    inside = in_domain(pod, within, chosen.path)
    first = scheduler.answer_alone(inside.signature, snapshot, expired)
    further = further_pods(scheduler, inside, first, snapshot, left, expired)
    if further.stopped and are_nodes_independent(scheduler, pod.signature, snapshot):
        # A message of kube-scheduler is only about the nodes of the domain.
        alone = snapshot.with_nodes(nodes_of(snapshot, within, chosen.path), snapshot.generation)
        first_alone = scheduler.answer_alone(pod.signature, alone, expired)
        stopped = further_pods(scheduler, pod, first_alone, alone, left, expired).stopped
        further = further._replace(stopped=replace(stopped or further.stopped, total=snapshot.labels.count))
    if own.verdict == first.verdict == "Feasible":
        own = replace(first, total=own.total, feasible=own.feasible, message=own.message, suggestions=own.suggestions)
    return Count(own, further, together)


def _by_affinity(
    scheduler: Scheduler,
    pod: WaitingPod,
    own: Placement,
    snapshot: Snapshot,
    left: int,
    expired: Expired,
    together: Together,
) -> Count:
    """Return the count for pods that follow the first of them into its domain, by their affinity.

    Its pods outside of all domains attract no others.
    """
    together, room = replace(together, outside=0), list[int]()
    if own.verdict == "Feasible" and own.best_rows is not None and len(together.occupied) < 2:
        together, room = with_first(together, own.best_rows, snapshot)
    if room and max(room) >= left:
        return Count(own, Further(left, None) if min(room) >= left else _NOT_KNOWN, together)
    return Count(own, further_pods(scheduler, pod, own, snapshot, left, expired), together)
