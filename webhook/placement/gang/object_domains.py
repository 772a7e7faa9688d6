"""The domains in which all pods of an object must or should run together, such as racks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook.backends.backend import SPREAD_CONSTRAINTS
from webhook.backends.references import GangRequest
from webhook.cluster.batch.network_topology import tier_of_key
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.text import cut
from webhook.kube.deadline import Expired
from webhook.kube.names import VOLCANO_PLUGIN
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.framework.together import Together
from webhook.placement.gang.assigned_pods import with_assigned
from webhook.placement.gang.domains import (
    domains_together,
    follows_itself,
    is_countable,
    with_first,
)
from webhook.placement.gang.template_domains import domains_of_templates
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
    """Return `fit`, that of the object with `gang`, with its domains if its pods run together.

    With several templates, domains are counted only for pods that follow each other by pod affinity.
    """
    within, some = gang.within, [(placed_by, found) for placed_by, found in roles if found.asked]
    known = [(*placed_by, found.asked) for placed_by, found in some if placed_by is not None]
    if within is None or gang.groups > 1 or not known or len(known) < len(some):
        return fit
    if within.doubt and tier_of_key(within.key) is not None:
        # The HyperNodes are not known.
        return fit
    (scheduler, signature, _), infos = known[0], [signature.info for _, signature, _ in known]
    follow = all(follows_itself(each, within.key, base) for each in infos)
    if not all(is_countable(scheduler, each, counts_all=within.is_native or follow) for each in infos):
        return replace(fit, doubt=f"its pods have {SPREAD_CONSTRAINTS}")
    alias, size = within.alias(spec.topology_aliases), gang.size
    if len(known) > 1:
        of_templates = domains_of_templates(known, within, alias, base, expired) if within.is_required else None
        if of_templates is None or of_templates.together.size != size:
            return replace(fit, doubt="its templates differ")
        fit = _following(fit, of_templates.together, of_templates.first_rows, base)
        if not of_templates.is_certain:
            fit = replace(fit, doubt="it depends on the order in which its pods are created")
        most = fit.together.most if fit.together and not spec.node_templates else None
        return fit if most is None or most >= size else replace(fit, most=most)
    pod, key = WaitingPod(signature, running_pod(signature.info, {})), GangKey(infos[0].inter_pod.namespace, "", "")
    base, doubt = with_assigned(pod, base, expired)
    doubt = within.doubt or doubt
    pod = replace(pod, signature=signature.anywhere())
    together = domains_together(scheduler, pod, key, within, alias, base, size, size, expired)
    pods = some[0][1].asked
    if tier_of_key(within.key) is not None and together.largest and together.largest.fits < pods:
        # It looks for room for all pods that there are then, not only for the least number that has to run together.
        doubt = f"Volcano can wait for a domain with room for all {pods} pods"
    if not within.is_required:
        return replace(fit, together=together)
    if follow:
        return _following(fit, together, some[0][1].first.best_rows, base)
    most = together.most
    largest = together.largest.fits if together.largest else 0
    is_never = most is not None and most < size and not spec.node_templates
    fit = replace(fit, fit=min(fit.fit, largest), most=most if is_never else None, together=together)
    return fit if fit.fit < size else replace(fit, doubt=doubt)


def _following(fit: GangFit, together: Together, rows: Rows | None, base: Snapshot) -> GangFit:
    """Return `fit` with its domains for pods that follow the first of them, which chooses one of the nodes `rows`."""
    room: list[int] = []
    if rows is not None:
        with_choice, room = with_first(together, rows, base)
        together = with_choice if room else together
    least = min(room, default=fit.size)
    if least < fit.size <= max(room, default=fit.size):
        fit = replace(fit, fit=min(fit.fit, least), is_complete=False)
    return replace(fit, together=together)


def without_count(placement: Placement, signatures: Iterable[PodSignature], base: Snapshot) -> Placement:
    """Return `placement`, that of the pods of an object whose domains are not counted, placed by `anywhere`.

    It is Unknown if Kueue, KAI or Volcano places these pods, with `signatures`, in one domain.
    """
    infos = [each.info.normalized_for(base) for each in signatures]
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
    if fit.together is None or fit.doubt:
        doubt = f": {why}" if (why := fit.doubt or gang.within.doubt) else ""
        reason = f"Whether one domain of {cut(gang.within.key, _LONGEST_SHOWN)} has room for all pods is not known"
        return replace(placement, verdict="Unknown", node=None, message=f"{base}. {reason}{doubt}.")
    if fit.fit >= fit.size:
        return placement
    text = f"{fit.text[:1].upper()}{fit.text[1:]}"
    return replace(placement, verdict="Waiting", node=None, scores={}, message=f"{base}. {text}.")
