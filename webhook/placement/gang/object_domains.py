"""The domains in which all pods of an object must or should run together, such as racks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook.backends.backend import SPREAD_CONSTRAINTS
from webhook.backends.references import TEMPLATES_DIFFER, GangRequest, Within
from webhook.cluster.batch.network_topology import UNKNOWN_DOMAIN
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.deadline import Expired
from webhook.kube.names import VOLCANO_PLUGIN
from webhook.kube.pod.gang_key import GANG, GangKey
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.framework.together import Domain, Together
from webhook.placement.gang.assigned_pods import with_assigned
from webhook.placement.gang.domains import domains_together, is_countable, members_on
from webhook.placement.gang.empty_cluster import TemplatePods, most_in_each_domain
from webhook.placement.gang.further_pods import MOST_STEPS
from webhook.placement.gang.gang_count import Gang, count_pods
from webhook.placement.gang.template_domains import domains_of_templates, follow_each_other
from webhook.placement.pod.network_limit import with_hyper_nodes
from webhook.placement.replicas.independent_nodes import are_nodes_independent
from webhook.placement.replicas.replicas import Replicas
from webhook.placement.scheduler import NOT_MODELLED, PodSignature, Scheduler
from webhook.placement.waiting.pending_placement import WaitingPod, running_pod
from webhook.policy.spec.document import PolicySpec

PlacedRole = tuple[tuple[Scheduler, PodSignature] | None, Replicas]
"""The placed replicas of a template, and what placed them, or None if that cannot be known."""

_LONGEST_SHOWN = 63


def anywhere(pod: Mapping[str, Any]) -> PodSignature:
    """Return the signature of `pod`, a raw API object of a template, without its domain, see `with_domains`."""
    return PodSignature.of(pod).anywhere()


def with_domains(
    fit: GangFit, gang: GangRequest, roles: Sequence[PlacedRole], spec: PolicySpec, base: Snapshot, expired: Expired
) -> GangFit:
    """Return the `fit` of the object with `gang`, with its domains if its pods run together.

    With several templates, domains are counted only for pods that follow each other by pod affinity.
    """
    within, some = gang.within, [(placed_by, found) for placed_by, found in roles if found.asked]
    known = [(*placed_by, found.asked) for placed_by, found in some if placed_by is not None]
    if within is None or within.key == UNKNOWN_DOMAIN or gang.groups > 1 or not known or len(known) < len(some):
        return fit
    follow = follow_each_other(known, within.key, base)
    namespace = known[0][1].info.inter_pod.namespace
    # Otherwise the scheduler makes a group of the pods of the object.
    is_shared = follow or gang.group is not None
    key = GangKey(namespace, f"{spec.key_domain}{GANG}", gang.name) if is_shared else GangKey(namespace, "", "")
    counts_all = within.is_native or follow
    if not all(is_countable(scheduler, each.info, counts_all=counts_all) for scheduler, each, _ in known):
        return replace(fit, doubt=f"its pods have {SPREAD_CONSTRAINTS}")
    within = within.named(spec.topology_aliases)
    if within.part:
        fit = _in_parts(fit, known[0], some[0][1], within, base, expired)
    elif len(known) == 1:
        counted = Gang(key, fit.size, gang.least, within=within)
        fit = _of_pods(fit, counted, within, known[0], some[0][1], base, expired, follow=follow)
        known = [(*known[0][:2], max(fit.size, known[0][2]))]
    else:
        fit = _of_templates(fit, known, within, base, expired, follow=follow)
    together = fit.together
    if not within.is_required or spec.node_templates:
        return fit
    if together is None:
        return fit if len(known) == 1 else _never(fit, known, within, base, expired)
    if (together.most or 0) >= fit.size:
        return fit
    bounds = most_in_each_domain(known, base, within, expired, restores=True)
    most = None if bounds is None else within.most(number for path, number in bounds.items() if path)
    return fit if most is None or most >= fit.size else replace(fit, most=most)


def _of_pods(
    fit: GangFit,
    gang: Gang,
    within: Within,
    template: TemplatePods,
    found: Replicas,
    base: Snapshot,
    expired: Expired,
    *,
    follow: bool,
) -> GangFit:
    """Return `fit` with its domains for the pods of one `template`, which are placed as `found`.

    They `follow` the first of them, or the scheduler looks for a domain. Other objects can create pods of `gang`: those
    that run decide on its domain, and the others are taken to be like these.
    """
    scheduler, signature, pods = template
    pod = WaitingPod(signature, running_pod(signature.info, {}))
    base, doubt = with_assigned(pod, with_hyper_nodes(base, within.key), expired)
    pod = replace(pod, signature=signature.anywhere())
    left = max(min(pods, fit.size), fit.size - members_on(base, gang.key))
    first = found.first if follow else scheduler.answer_alone(pod.signature, base, expired)
    own, further, together = count_pods(scheduler, gang, pod, first, base, left, expired)
    if not within.is_required or together is None or together.first:
        return fit if together is None else _with_choice(fit, together)
    placed = fit.size if found.placed >= pods else fit.fit
    if follow and fit.size <= pods:
        return replace(fit, together=together, fit=placed)
    fit = replace(fit, together=together, fit=min(placed, fit.size - left + further.number))
    if not further.is_complete:
        return replace(fit, doubt=f"at most {MOST_STEPS} pods are counted")
    if fit.fit < fit.size:
        return fit
    if all(each.fits < pods for each in together.allowed):
        # Volcano can look for room for all pods. Others can start the least number in a domain without room for all.
        doubt = f"it can start with {fit.size} of its {pods} pods, and no domain has room for all"
    return replace(fit, doubt=within.doubt or doubt, own=own)


def _in_parts(
    fit: GangFit, template: TemplatePods, found: Replicas, within: Within, base: Snapshot, expired: Expired
) -> GangFit:
    """Return `fit` with its domains for the pods of one `template`, whose parts run in a domain each.

    Each part takes the room of its pods from one domain, so the order of the parts does not matter.
    """
    scheduler, signature, pods = template
    pod, base = WaitingPod(signature.anywhere(), running_pod(signature.info, {})), with_hyper_nodes(base, within.key)
    if fit.size < pods or pods % within.part or not are_nodes_independent(scheduler, pod.signature, base):
        return replace(fit, doubt="each of its partitions has a domain of its own")
    key = GangKey(signature.info.inter_pod.namespace, "", "")
    together = domains_together(scheduler, pod, key, within, base, fit.size, fit.size, expired)
    number = min(within.most(each.fits for each in together.domains), found.placed, fit.size)
    own = scheduler.answer_alone(pod.signature, base, expired) if number == fit.size else None
    return replace(fit, fit=number, together=together, own=own)


def _of_templates(
    fit: GangFit, templates: Sequence[TemplatePods], within: Within, base: Snapshot, expired: Expired, *, follow: bool
) -> GangFit:
    """Return `fit` with its domains for the pods of several `templates` if they `follow` each other."""
    found = domains_of_templates(templates, within, base, expired) if within.is_required and follow else None
    if found is None or found[0].size != fit.size:
        return replace(fit, doubt=TEMPLATES_DIFFER)
    together, is_certain = found
    fit = _with_choice(fit, together)
    return fit if is_certain else replace(fit, doubt="it depends on the order in which its pods are created")


def _never(
    fit: GangFit, templates: Sequence[TemplatePods], within: Within, base: Snapshot, expired: Expired
) -> GangFit:
    """Return `fit` with the reason if no domain could hold the pods of one of `templates`.

    Kueue looks for a domain for the pods of each template, other schedulers for all pods of a gang. Pods of a template
    that need not run, or not in one domain, do not count. Nodes without the label count as in the largest domain.
    """
    is_whole = fit.size == sum(number for _, _, number in templates) and within.doubt != TEMPLATES_DIFFER
    groups = [([each], each[2]) for each in templates if is_whole]
    if within.is_native or within.is_of_least:
        groups.append(([*templates], fit.size))
    for group, size in groups:
        bounds = most_in_each_domain(group, base, within, expired, restores=True) or {}
        domains = tuple(sorted(Domain(path, 0, most) for path, most in bounds.items() if path))
        together = Together(within, size, size, domains, 0)
        most = (together.most or 0) + bounds.get((), 0)
        if bounds and most < size:
            possible = fit.size - size + most
            return replace(fit, fit=min(fit.fit, possible), most=possible, never=together.never_text())
    return fit


def _with_choice(fit: GangFit, together: Together) -> GangFit:
    """Return `fit` with the domains; if one without room for all can be chosen, others wait, or it is not known."""
    if not together.first:
        return replace(fit, together=together)
    room = [each.fits for each in together.domains if each.path in together.first]
    is_complete = max(room) < together.missing
    return replace(fit, fit=min(fit.fit, min(room)), is_complete=is_complete, together=together)


def without_count(placement: Placement, kept: Sequence[PodSignature], base: Snapshot) -> Placement:
    """Return `placement`, that of the pods of an object whose domains are not counted, placed by `anywhere`.

    It is Unknown if Kueue, KAI or Volcano places pods, with the signatures `kept`, in one domain.
    """
    infos = [each.info.normalized_for(base) for each in kept]
    keys = {key for each in infos for key in (*each.topologies, *((VOLCANO_PLUGIN,) if each.network else ()))}
    if not keys or placement.verdict != "Feasible":
        return placement
    shown = ", ".join(sorted(keys))
    message = f"{placement.message.removesuffix('.')}. Whether one of them will do depends on {shown}, {NOT_MODELLED}."
    unmodelled = tuple(sorted({*placement.unmodelled, *keys}))
    return replace(placement, verdict="Unknown", node=None, message=message, unmodelled=unmodelled)


def as_together(placement: Placement, gang: GangRequest, fit: GangFit) -> Placement:
    """Return `placement`, that of the pods of `gang`, with `fit`: they wait if no domain has room for all of them.

    It is Unknown if the first pod chooses by chance whether the others have room.
    """
    placement = replace(placement, gang=fit)
    if gang.within is None or not gang.within.is_required or placement.verdict not in ("Feasible", "Waiting"):
        return placement
    if fit.together is not None and fit.together.first and not fit.is_complete:
        return replace(Placement.unknown(fit.unknown_text), gang=fit)
    if placement.verdict == "Waiting":
        return placement
    base = placement.message.removesuffix(".")
    if not fit.never and (fit.together is None or fit.doubt):
        doubt = f": {why}" if (why := fit.doubt or gang.within.doubt) else ""
        reason = f"Whether one domain of {cut(gang.within.key, _LONGEST_SHOWN)} has room for all pods is not known"
        return replace(placement, verdict="Unknown", node=None, message=f"{base}. {reason}{doubt}.")
    if fit.fit >= fit.size:
        return placement if fit.own is None else replace(placement, node=fit.own.node, scores=fit.own.scores)
    text = f"{fit.text[:1].upper()}{fit.text[1:]}"
    return replace(placement, verdict="Waiting", node=None, scores={}, message=f"{base}. {text}.")
