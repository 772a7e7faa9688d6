"""The placement of a gang: pods that are only useful together, such as the workers of a distributed training job.

A scheduler that does not know gangs binds the pods one by one. If only some pods of a gang fit, they hold their cards
and wait, so two such gangs can deadlock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from webhook.backends.references import GangRequest, Within
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.pod.gang_key import GANG, GangKey
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.framework.result import GangFit, Placement, with_templates
from webhook.placement.framework.together import Together
from webhook.placement.gang.domains import (
    domains_together,
    follows_itself,
    in_domain,
    members_on,
    nodes_of,
    without_counted_topologies,
)
from webhook.placement.gang.empty_cluster import most_in_each_domain, most_possible, restored_for
from webhook.placement.gang.further_pods import Further, further_pods
from webhook.placement.packing.free_cards import free_amounts
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.node_templates import TemplateNode
from webhook.placement.replicas.independent_nodes import are_nodes_independent
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods, isolated
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.spec.document import PolicySpec


@dataclass(frozen=True, slots=True)
class Gang:
    """The gang of a pod: `size` pods with `key`. Its scheduler binds at least `least` of them, or none.

    `ends_after` is the time after which Kueue evicts a gang that has started only in part, or empty if it does not.
    `within` is the request that its pods run in one topology domain, or None; `alias` is the name of the policy for the
    label, or empty.
    """

    key: GangKey
    size: int
    least: int = 1
    ends_after: str = ""
    within: Within | None = None
    alias: str = ""


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


class _Count(NamedTuple):
    """The further pods of a gang that fit, and the placement `own` of the first of them.

    `together` are the domains, if the gang runs in one.
    """

    own: Placement
    further: Further
    together: Together | None = None


def gang_of(request: GangRequest, pod: WaitingPod, spec: PolicySpec) -> Gang:
    """Return the gang of `pod` in `request`, which is from annotations in the key domain of `spec`.

    A gang name that is a default of the namespace is ignored, because running pods of this gang cannot be recognized.
    """
    running, key_domain, within = pod.running, spec.key_domain, request.within
    found = (key for key in running.gangs if key.annotation.partition("/")[0] == key_domain)
    key = next(found, GangKey(running.namespace, f"{key_domain}{GANG}", request.name or running.name))
    alias = within.alias(spec.topology_aliases) if within else ""
    return Gang(key, request.size, request.least, request.ends_after, within, alias)


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
    # The pods may never run: users decide how many labels they have.
    before = isolated(assumed.before_pod(pod.preemption))
    if gang.within is not None and gang.within.is_required and pod.signature.info.topologies:
        # The domains are counted here.
        pod = without_counted_topologies(pod)
        own = replace(scheduler.answer_alone(pod.signature, before, expired), suggestions=own.suggestions)
    question = _Question(scheduler, gang, pod, templates, expired)
    placed = min(members_on(before, gang.key), gang.size)
    known = own.verdict != "Unknown" and not pod.signature.info.gates
    alone = own if gang.least <= 1 else None
    end = gang.ends_after
    fit = GangFit(gang.key.name, gang.size, placed, placed, known, least=gang.least, ends_after=end, own=alone)
    if own.verdict in ("Unknown", "Infeasible") or pod.signature.info.gates:
        return replace(own, gang=fit)
    left = max(1, gang.size - placed)
    try:
        own, further, together = _count(question, own, before, left)
        number = min(placed + further.number, gang.size)
        starting = own if number >= gang.least else alone
        fit = replace(fit, fit=number, is_complete=further.is_complete, own=starting, together=together)
        if further.stopped is None and further.is_complete:
            placement = replace(own, gang=fit)
            return _doubted(placement, gang.within.doubt) if gang.within and gang.within.is_required else placement
        if further.stopped is None or not further.is_complete:
            reason = f"{fit.text}; whether the others fit is not known"
            return replace(Placement.unknown(reason), gang=fit)
        found = _not_now(question, further.stopped, fit, before, assumed)
        smaller = together.smaller_gang(number) if together else ""
        return replace(found, suggestions=(*found.suggestions, smaller)) if smaller else found
    except DeadlineNearError as error:
        unknown = Placement.unknown(str(error), is_final=isinstance(error, BudgetSpentError))
        return replace(unknown, gang=replace(fit, is_complete=False))


def _doubted(placement: Placement, doubt: str) -> Placement:
    if not doubt:
        return placement
    message = f"{placement.message.removesuffix('.')}. {doubt[:1].upper()}{doubt[1:]}."
    return replace(placement, verdict="Unknown", node=None, scores={}, message=message)


def _count(question: _Question, own: Placement, snapshot: Snapshot, left: int) -> _Count:
    """Return the count of `left` further pods of the gang on `snapshot`. `own` is the placement there of the first one.

    Raises:
        DeadlineNearError: the deadline is near.
    """
    scheduler, gang, pod, expired = question.scheduler, question.gang, question.pod, question.expired
    within = gang.within
    if within is None:
        return _Count(own, further_pods(scheduler, pod, own, snapshot, left, expired))
    together = domains_together(scheduler, pod, gang.key, within, gang.alias, snapshot, gang.size, left, expired)
    if not within.is_required or follows_itself(question.info, within.key, snapshot):
        further = further_pods(scheduler, pod, own, snapshot, left, expired)
        if within.is_required and further.stopped and own.node and not any(each.members for each in together.domains):
            chosen_first = snapshot.nodes[snapshot.rows[own.node]].node.labels.get(within.key, "")
            together = replace(together, first=chosen_first)
        return _Count(own, further, together)
    # Of those with room, the one with the least leaves the most for others.
    chosen = min(together.with_room, key=lambda each: each.fits, default=together.largest)
    if chosen is None:
        return _Count(own, Further(0, replace(own, verdict="Waiting", node=None)), together)
    inside = in_domain(pod, within.path, chosen.path)
    first = scheduler.answer_alone(inside.signature, snapshot, expired)
    further = further_pods(scheduler, inside, first, snapshot, left, expired)
    if further.stopped and are_nodes_independent(scheduler, pod.signature, snapshot):
        # A message of kube-scheduler is about the nodes of the domain alone.
        alone = snapshot.with_nodes(nodes_of(snapshot, within.path, chosen.path), snapshot.generation)
        first_alone = scheduler.answer_alone(pod.signature, alone, expired)
        stopped = further_pods(scheduler, pod, first_alone, alone, left, expired).stopped
        further = further._replace(stopped=replace(stopped or further.stopped, total=snapshot.labels.count))
    if own.verdict == first.verdict == "Feasible":
        own = replace(first, total=own.total, feasible=own.feasible, message=own.message, suggestions=own.suggestions)
    return _Count(own, further, together)


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
    most = _most(question, base, fit.together)
    if most is None or most >= fit.size:
        return _with_fit(replace(stopped, verdict="Waiting"), fit)
    if names := _fitting_templates(question, base):
        fit = replace(fit, next_message=with_templates(stopped.message, names))
        return _with_fit(replace(stopped, verdict="Waiting"), fit)
    exemption = stopped.deny_exemption or _exemption(question, base, fit)
    return _with_fit(replace(stopped, verdict="Infeasible", deny_exemption=exemption), replace(fit, most=most))


def _most(question: _Question, base: Snapshot, together: Together | None, *, restores: bool = False) -> int | None:
    """Return an upper bound of the pods of the gang that the emptied `base` can hold, or None if it is not known."""
    scheduler, signature, expired = question.scheduler, question.pod.signature, question.expired
    if together is None or not together.is_required:
        return most_possible(scheduler, signature, base, expired, restores=restores)
    if not restores:
        return together.most
    path = question.gang.within.path if question.gang.within else ()
    most = most_in_each_domain(scheduler, signature, base, path, expired, restores=True)
    return None if most is None else max(most.values(), default=0)


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
    found = _count(question, first, base, left).further
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


def _exemption(question: _Question, base: Snapshot, fit: GangFit) -> str:
    """Return the reason not to deny an Infeasible gang, which is a temporary state of nodes, or "" if there is none."""
    if fit.together is not None and fit.together.is_required and not fit.together.domains:
        return f"nodes can get the label {cut(fit.together.key, 63)} later"
    passed = restored_for(question.scheduler, question.pod.signature, base)
    if passed is None:
        return ""
    most = _most(question, base, fit.together, restores=True)
    if most is None or most < fit.size:
        return ""
    nodes = question.scheduler.feasible(PodSignature(passed.info), passed.nodes, question.expired)
    return passed.doubt(np.flatnonzero(nodes), of_each=False)
