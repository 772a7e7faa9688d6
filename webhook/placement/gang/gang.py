"""The placement of a gang: pods that are only useful together, such as workers of a distributed training job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webhook.backends.references import GangRequest, Within
from webhook.cluster.batch.network_topology import tier_of_key
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.pod.gang_key import GANG, GangKey
from webhook.placement.framework.fit_error import with_templates
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.framework.together import Together
from webhook.placement.gang.assigned_pods import with_assigned
from webhook.placement.gang.domains import members_on, without_own_affinity
from webhook.placement.gang.empty_cluster import MOST_COUNTED, most_in_each_domain, most_possible, restored_for
from webhook.placement.gang.gang_count import Count, Gang, count_pods
from webhook.placement.packing.free_cards import free_amounts
from webhook.placement.pod.network_limit import with_hyper_nodes
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.node_templates import TemplateNode
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods, isolated
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.spec.document import PolicySpec


@dataclass(frozen=True, slots=True)
class _Question:
    """The inputs to evaluate the pods of a gang, which are all like `pod`.

    `asked` is the pod with the annotations of a domain that is counted here.
    """

    scheduler: Scheduler
    gang: Gang
    asked: WaitingPod
    pod: WaitingPod
    templates: Sequence[TemplateNode]
    expired: Expired

    @property
    def info(self) -> PodInfo:
        return self.pod.signature.info

    def count(self, own: Placement, snapshot: Snapshot, left: int) -> Count:
        return count_pods(self.scheduler, self.gang, self.pod, own, snapshot, left, self.expired)


def gang_of(request: GangRequest, pod: WaitingPod, spec: PolicySpec) -> Gang:
    """Return the gang in `request`, whose name counts only if it is not a default of the namespace."""
    running, key_domain, within = pod.running, spec.key_domain, request.within
    found = (key for key in running.gangs if key.annotation.partition("/")[0] == key_domain)
    key = next(found, GangKey(running.namespace, f"{key_domain}{GANG}", request.name or running.name))
    within = within and within.named(spec.topology_aliases)
    return Gang(key, request.size, request.least, request.ends_after, within, request.is_stated)


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
    within = gang.within if gang.within is not None and gang.within.is_required else None
    if gang.size <= 1:
        return own if within is None else _with_label_in_future(own, within, assumed.base)
    # The pods may never run: users decide how many labels they have.
    before = isolated(assumed.before_pod(pod.preemption))
    info = pod.signature.info
    asked = pod
    if within is not None and (info.topologies or info.network):
        # The domains are counted here.
        before, doubt = with_assigned(asked, before, expired)
        within, pod = within._replace(doubt=within.doubt or doubt), replace(pod, signature=pod.signature.anywhere())
        own = replace(scheduler.answer_alone(pod.signature, before, expired), suggestions=own.suggestions)
    question = _Question(scheduler, gang, asked, pod, templates, expired)
    placed = min(members_on(before, gang.key), gang.size)
    known = own.verdict != "Unknown" and not pod.signature.info.gates
    alone = own if gang.least <= 1 else None
    end = gang.ends_after
    fit = GangFit(gang.key.name, gang.size, placed, placed, known, least=gang.least, ends_after=end, own=alone)
    if own.verdict in ("Unknown", "Infeasible") or pod.signature.info.gates:
        return _with_label_in_future(replace(own, gang=fit), within, assumed.base) if within else replace(own, gang=fit)
    if placed >= gang.size:
        return replace(own, gang=fit)
    left = gang.size - placed
    try:
        own, further, together = question.count(own, before, left)
        number = min(placed + further.number, gang.size)
        starting = own if number >= gang.least else alone
        fit = replace(fit, fit=number, is_complete=further.is_complete, own=starting, together=together)
        if further.stopped is None and further.is_complete:
            placement = replace(own, gang=fit)
            return _doubted(placement, within.doubt) if within else placement
        is_never = within is not None and together is not None and (together.most or gang.size) < gang.size
        if (further.stopped is None or not further.is_complete) and not is_never:
            return replace(Placement.unknown(fit.unknown_text), gang=fit)
        stopped = further.stopped or replace(own, verdict="Waiting", node=None)
        found = _not_now(question, stopped, replace(fit, is_complete=True), before, assumed)
        smaller = together.smaller_gang() if together else ""
        return replace(found, suggestions=(*found.suggestions, smaller)) if smaller else found
    except DeadlineNearError as error:
        unknown = Placement.unknown(str(error), is_final=isinstance(error, BudgetSpentError))
        return replace(unknown, gang=replace(fit, is_complete=False))


def _with_label_in_future(own: Placement, within: Within, base: Snapshot) -> Placement:
    """Return `own`, which is not denied if no node has the labels of the domain: nodes can get them later."""
    codes, _ = with_hyper_nodes(base, within.key).labels.paths(within.path, within.below)
    if own.verdict != "Infeasible" or (codes >= 0).any():
        return own
    return replace(own, deny_exemption=own.deny_exemption or _label_later(within))


def _label_later(within: Within) -> str:
    if tier_of_key(within.key) is not None:
        return "HyperNodes can change"
    return f"nodes can get the label {cut(within.key, 63)} later"


def _doubted(placement: Placement, doubt: str) -> Placement:
    if not doubt:
        return placement
    message = f"{placement.message.removesuffix('.')}. {doubt[:1].upper()}{doubt[1:]}."
    return replace(placement, verdict="Unknown", node=None, scores={}, message=message)


def _not_now(
    question: _Question, stopped: Placement, fit: GangFit, before: Snapshot, assumed: AssumedPods[Any]
) -> Placement:
    """Return the placement of a gang that does not fit now."""
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
        has_names = all(name in stopped.message for name in names)
        fit = replace(fit, next_message=stopped.message if has_names else with_templates(stopped.message, names))
        return _with_fit(replace(stopped, verdict="Waiting"), fit)
    exemption = stopped.deny_exemption or _exemption(question, base, fit)
    return _with_fit(replace(stopped, verdict="Infeasible", deny_exemption=exemption), replace(fit, most=most))


def _most(question: _Question, base: Snapshot, together: Together | None, *, restores: bool = False) -> int | None:
    """Return an upper bound of the pods of the gang that the emptied `base` can hold, or None if it is not known."""
    scheduler, signature, expired = question.scheduler, question.pod.signature, question.expired
    if together is None or not together.within.is_required:
        return most_possible(scheduler, signature, base, expired, restores=restores)
    if not restores:
        return together.most
    most = most_in_each_domain([(scheduler, signature, MOST_COUNTED)], base, together.within, expired, restores=True)
    return None if most is None else together.within.most(number for values, number in most.items() if values)


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
    base = with_assigned(question.asked, isolated(base), question.expired).snapshot
    left = max(1, question.gang.size - members_on(base, key))
    first = question.scheduler.answer(question.pod.signature, base, question.expired)
    found = question.count(first, base, left).further
    return others if found.is_complete and found.stopped is None else 0


def _largest_block(question: _Question, snapshot: Snapshot, nodes: Mask) -> str:
    """Return a text with the largest free number of cards on one of `nodes`, or "" for pods without cards."""
    requests = question.scheduler.profile.counted_requests(question.info)
    cards = [(resource, amount) for resource, amount in requests if "/" in resource and amount > 0]
    if not cards:
        return ""
    nodes = nodes & open_nodes(snapshot, question.scheduler.temporary_taints)
    free = {resource: free_amounts(snapshot, resource, nodes) for resource, _ in cards}
    # Of several, such as cards and network devices, the one that fewer pods find.
    scarcest, _ = min(cards, key=lambda each: int((free[each[0]] // each[1]).sum()))
    most = int(free[scarcest].max(initial=0))
    if not most:
        return f"no {scarcest} is free" if nodes.any() else ""
    count = int((free[scarcest] == most).sum())
    return f"largest free block: {most} {scarcest} on {count} {'node' if count == 1 else 'nodes'}"


def _fitting_templates(question: _Question, base: Snapshot) -> list[str]:
    if not question.templates:
        return []
    nodes = base.with_other_nodes(each.info for each in question.templates)
    fitting = question.scheduler.feasible(question.pod.signature, nodes, question.expired)
    return [each.name for each in question.templates if fitting[nodes.rows[each.info.node.name]]]


def _exemption(question: _Question, base: Snapshot, fit: GangFit) -> str:
    """Return the reason, or "", not to deny an Infeasible gang: its other pods, or a temporary state of nodes."""
    if not question.gang.is_stated:
        return "the other pods of its PodGroup can request less"
    together = fit.together
    if together is not None and together.within.is_required:
        within = together.within
        free = PodSignature(without_own_affinity(question.info, within.key, base))
        unlabelled = most_in_each_domain([(question.scheduler, free, MOST_COUNTED)], base, within, question.expired)
        if (together.most or 0) + (unlabelled or {}).get((), 0) >= fit.size:
            return _label_later(within)
    passed = restored_for(question.scheduler, question.pod.signature, base)
    if passed is None:
        return ""
    most = _most(question, base, fit.together, restores=True)
    if most is None or most < fit.size:
        return ""
    nodes = question.scheduler.feasible(PodSignature(passed.info), passed.nodes, question.expired)
    return passed.doubt(np.flatnonzero(nodes), of_each=False)
