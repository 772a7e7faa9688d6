"""The placement of a gang: pods that are only useful together, such as the workers of a distributed training job.

A scheduler that does not know gangs binds the pods one by one. If only some pods of a gang fit, they hold their cards
and wait, so two such gangs can deadlock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from webhook.backends.references import GangRequest
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.pod.gang_key import GANG, GangKey
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.framework.result import GangFit, Placement, with_templates
from webhook.placement.gang.empty_cluster import most_possible, restored_for
from webhook.placement.packing.free_cards import free_amounts
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.node_templates import TemplateNode
from webhook.placement.replicas.independent_nodes import are_nodes_independent, fill
from webhook.placement.replicas.replicas import FillingCluster
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods, isolated
from webhook.placement.waiting.pending_placement import WaitingPod

MOST_STEPS = 100
"""The number of pods that are placed one after the other, where pods on one node decide about other nodes."""

# Filling so many takes about 20 ms.
_NODES_AT_ONCE = 250
_SHARED_MODES = frozenset(("ReadWriteMany", "ReadOnlyMany"))


@dataclass(frozen=True, slots=True)
class Gang:
    """The gang of a pod: `size` pods with `key`. Its scheduler binds at least `least` of them, or none.

    `ends_after` is the time after which Kueue evicts a gang that has started only in part, or empty if it does not.
    """

    key: GangKey
    size: int
    least: int = 1
    ends_after: str = ""


class _Further(NamedTuple):
    """The number of further pods of a gang that fit. `stopped` is the placement of the first pod that does not fit.

    If `is_complete` is false, `number` is a lower bound.
    """

    number: int
    stopped: Placement | None
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class _Question:
    """The inputs to evaluate the pods of a gang, which are all like `pod`."""

    scheduler: Scheduler
    gang: Gang
    pod: WaitingPod
    templates: Sequence[TemplateNode]
    expired: Expired

    @property
    def info(self) -> PodInfo:
        return self.pod.signature.info


def gang_of(request: GangRequest, pod: WaitingPod, key_domain: str) -> Gang:
    """Return the gang of `pod` in `request`, which is from annotations of `key_domain`.

    A gang name that is a default of the namespace is ignored, because running pods of this gang cannot be recognized.
    """
    running = pod.running
    found = (key for key in running.gangs if key.annotation.partition("/")[0] == key_domain)
    key = next(found, GangKey(running.namespace, f"{key_domain}{GANG}", request.name or running.name))
    return Gang(key, request.size, request.least, request.ends_after)


def members_on(snapshot: Snapshot, key: GangKey) -> int:
    """Return the number of pods of the gang with `key` that `snapshot` shows on nodes."""
    return sum([info.gangs.count(key) for info in snapshot.nodes if info.gangs])


def gang_placement(
    scheduler: Scheduler,
    gang: Gang,
    pod: WaitingPod,
    own: Placement,
    assumed: AssumedPods[Any],
    *,
    templates: Sequence[TemplateNode] = (),
    expired: Expired = never,
) -> Placement:
    """Return the placement of the gang of `pod`, whose placement by itself is `own`.

    Pods of the gang that run, or that wait and have room, count as placed. The other pods are assumed to be like `pod`.
    The verdict is Feasible if all fit together now, Waiting if an empty cluster, or one with new nodes of `templates`,
    could hold them, and else Infeasible. `scheduler` drops its cached answers for other snapshots.
    """
    if gang.size <= 1:
        return own
    question = _Question(scheduler, gang, pod, templates, expired)
    # The pods may never run: users decide how many labels they have.
    before = isolated(assumed.before_pod(pod.preemption))
    placed = min(members_on(before, gang.key), gang.size)
    known = own.verdict != "Unknown" and not pod.signature.info.gates
    alone = own if gang.least <= 1 else None
    end = gang.ends_after
    fit = GangFit(gang.key.name, gang.size, placed, placed, known, least=gang.least, ends_after=end, own=alone)
    if own.verdict in ("Unknown", "Infeasible") or pod.signature.info.gates:
        return replace(own, gang=fit)
    left = max(1, gang.size - placed)
    try:
        further = _further(question, own, before, left)
        number = min(placed + further.number, gang.size)
        starting = own if number >= gang.least else alone
        fit = replace(fit, fit=number, is_complete=further.is_complete, own=starting)
        if further.stopped is None and further.is_complete:
            return replace(own, gang=fit)
        if further.stopped is None or not further.is_complete:
            reason = f"{fit.text}; whether the others fit is not known"
            return replace(Placement.unknown(reason), gang=fit)
        return _not_now(question, further.stopped, fit, before, assumed)
    except DeadlineNearError as error:
        unknown = Placement.unknown(str(error), is_final=isinstance(error, BudgetSpentError))
        return replace(unknown, gang=replace(fit, is_complete=False))


def _further(question: _Question, own: Placement, snapshot: Snapshot, left: int) -> _Further:
    """Return the number of `left` further pods that fit on `snapshot`. `own` is the placement there of the first one.

    Raises:
        DeadlineNearError: the deadline is near.
    """
    scheduler, pod, expired = question.scheduler, question.pod, question.expired
    if own.verdict != "Feasible":
        return _Further(0, own)
    if left > 1 and not _shares_claims(question.info, snapshot):
        # The others have claims of their own, which are not known.
        return _Further(1, None, is_complete=False)
    if not are_nodes_independent(scheduler, pod.signature, snapshot):
        return _one_by_one(question, own, snapshot, left)
    rows = scheduler.feasible_rows(pod.signature, snapshot, expired)
    number = len(rows) if len(rows) >= left else 0
    for start in range(0, len(rows), _NODES_AT_ONCE):
        if number >= left:
            break
        among = np.zeros(len(snapshot.nodes), dtype=np.bool_)
        among[rows[start : start + _NODES_AT_ONCE]] = True
        filled = fill(scheduler, pod.signature, pod.running, snapshot, most=left, among=among, expired=expired)
        number, snapshot = number + int(filled.copies.sum()), filled.snapshot
    if number >= left:
        return _Further(left, None)
    return _Further(number, scheduler.answer(pod.signature, snapshot, expired))


def _one_by_one(question: _Question, own: Placement, snapshot: Snapshot, left: int) -> _Further:
    """Return the result of `_further` by placing one pod after the other, as kube-scheduler does."""
    cluster, signature = FillingCluster(snapshot), question.pod.signature
    placement = own
    for number in range(min(left, MOST_STEPS)):
        if placement.verdict != "Feasible" or placement.node is None:
            return _Further(number, placement, placement.verdict != "Unknown")
        if number + 1 == left:
            return _Further(left, None)
        cluster.add(signature, question.pod.running, placement.node)
        if not cluster.is_known_for(signature):
            return _Further(number + 1, None, is_complete=False)
        placement = question.scheduler.answer(signature, cluster.snapshot, question.expired)
        if not placement.is_final:
            raise DeadlineNearError(placement.message)
    return _Further(MOST_STEPS, None, is_complete=False)


def _shares_claims(info: PodInfo, snapshot: Snapshot) -> bool:
    """Return whether all pods of a gang can use the claims of one pod, such as a data set that many nodes mount."""
    claims = snapshot.storage.claims or {}
    found = [claims.get((info.volumes.namespace, use.name)) for use in info.volumes.claims]
    return all(each is not None and each.is_bound and _SHARED_MODES & set(each.access_modes) for each in found)


def _not_now(
    question: _Question, stopped: Placement, fit: GangFit, before: Snapshot, assumed: AssumedPods[Any]
) -> Placement:
    """Return the placement of a gang that does not fit now.

    `stopped` is the placement of its first pod without a node.
    """
    base, expired = assumed.base, question.expired
    on_empty = question.scheduler.feasible(question.pod.signature, base.without_pods(), expired)
    fit = replace(fit, block=_largest_block(question, before, on_empty), next_message=stopped.message)
    if waiting := _waiting_before(question, assumed):
        fit = replace(fit, waiting_before=waiting)
        return _with_fit(replace(stopped, verdict="Waiting", waiting_before=waiting), fit)
    stopped = replace(stopped, waiting_before=0)
    most = most_possible(question.scheduler, question.pod.signature, base, expired)
    if most is None or most >= fit.size:
        return _with_fit(replace(stopped, verdict="Waiting"), fit)
    if names := _fitting_templates(question, base):
        fit = replace(fit, next_message=with_templates(stopped.message, names))
        return _with_fit(replace(stopped, verdict="Waiting"), fit)
    exemption = stopped.deny_exemption or _exemption(question, base, fit.size)
    return _with_fit(replace(stopped, verdict="Infeasible", deny_exemption=exemption), replace(fit, most=most))


def _with_fit(placement: Placement, fit: GangFit) -> Placement:
    message = f"{fit.next_message.removesuffix('.')}. {fit.text[:1].upper()}{fit.text[1:]}."
    return replace(placement, node=None, scores={}, message=message, gang=fit)


def _waiting_before(question: _Question, assumed: AssumedPods[Any]) -> int:
    """Return the number of other pods that wait before the gang, or 0 if it would not fit without them either."""
    key, base = question.gang.key, assumed.base
    own = sum(key in each.pod.gangs for each in assumed.by_key.values())
    others = assumed.count_before(assumed.priority_of(question.pod.preemption)) - own
    if others <= 0:
        return 0
    base = isolated(base)
    left = max(1, question.gang.size - members_on(base, key))
    first = question.scheduler.answer(question.pod.signature, base, question.expired)
    found = _further(question, first, base, left)
    return others if found.is_complete and found.stopped is None else 0


def _largest_block(question: _Question, snapshot: Snapshot, nodes: Mask) -> str:
    """Return a text with the largest free number of cards on one of `nodes`, or "" for pods without cards."""
    cards = [(resource, amount) for resource, amount in question.info.requests if "/" in resource and amount > 0]
    if not cards:
        return ""
    nodes = nodes & open_nodes(snapshot, question.scheduler.temporary_taints)
    free = {resource: free_amounts(snapshot, resource, nodes) for resource, _ in cards}
    # Of several, such as cards and network devices, the one that fewer pods find.
    scarcest, _ = min(cards, key=lambda each: int((free[each[0]] // each[1]).sum()))
    most = int(free[scarcest].max(initial=0))
    if not most:
        return f"no {scarcest} is free"
    count = int((free[scarcest] == most).sum())
    return f"largest free block: {most} {scarcest} on {count} {'node' if count == 1 else 'nodes'}"


def _fitting_templates(question: _Question, base: Snapshot) -> list[str]:
    """Return the names of the node templates whose new nodes could take a pod of the gang."""
    if not question.templates:
        return []
    nodes = base.with_other_nodes(each.info for each in question.templates)
    fitting = question.scheduler.feasible(question.pod.signature, nodes, question.expired)
    return [each.name for each in question.templates if fitting[nodes.rows[each.info.node.name]]]


def _exemption(question: _Question, base: Snapshot, size: int) -> str:
    """Return the reason not to deny an Infeasible gang, which is a temporary state of nodes, or "" if there is none."""
    passed = restored_for(question.scheduler, question.pod.signature, base)
    if passed is None:
        return ""
    most = most_possible(question.scheduler, question.pod.signature, base, question.expired, restores=True)
    if most is None or most < size:
        return ""
    nodes = question.scheduler.feasible(PodSignature(passed.info), passed.nodes, question.expired)
    return passed.doubt(np.flatnonzero(nodes), of_each=False)
