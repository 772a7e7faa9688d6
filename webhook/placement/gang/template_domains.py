"""The room in each topology domain for the pods of several templates that follow the first of them by pod affinity."""

from collections.abc import Sequence

import numpy as np

from webhook.backends.references import Within
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.together import Domain, Together
from webhook.placement.gang.domains import in_domain, with_first
from webhook.placement.gang.empty_cluster import TemplatePods, most_in_each_domain
from webhook.placement.gang.further_pods import MOST_STEPS
from webhook.placement.gang.gang_bound import selecting_itself
from webhook.placement.replicas.replicas import FillingCluster
from webhook.placement.waiting.assumed_pods import isolated
from webhook.placement.waiting.pending_placement import WaitingPod, running_pod


def follow_each_other(templates: Sequence[TemplatePods], topology_key: str, snapshot: Snapshot) -> bool:
    """Return whether required affinity over `topology_key` of all pods of `templates` selects all of these pods."""
    infos = [signature.info for _, signature, _ in templates]
    return all(
        any(
            term.topology_key == topology_key
            for term in selecting_itself(own.inter_pod.terms.required, other, snapshot)
        )
        for own in infos
        for other in infos
    )


def domains_of_templates(
    templates: Sequence[TemplatePods], within: Within, snapshot: Snapshot, expired: Expired
) -> tuple[Together, bool] | None:
    """Return the domains for all pods of `templates`, and whether they are certain.

    They follow each other. The pods of each domain are placed one after the other, in the order of the templates.
    Controllers can create the pods of any template first, so the domains are only certain if the reverse order gives
    the same. The result is None for more than `MOST_STEPS` pods, or if a snapshot does not show everything that their
    placement depends on.
    """
    size = sum(number for _, _, number in templates)
    if size > MOST_STEPS:
        return None
    codes, values = snapshot.labels.paths(within.path, within.below)
    most = most_in_each_domain(templates, snapshot, within, expired, restores=True)
    domains, is_certain = [], True
    for path in in_time([values[code] for code in np.unique(codes[codes >= 0]).tolist()], expired):
        room = _room(templates, within, path, snapshot, expired)
        reverse = _room(templates[::-1], within, path, snapshot, expired)
        if room is None or reverse is None:
            return None
        is_certain = is_certain and (room == size) == (reverse == size)
        domains.append(Domain(path, room, None if most is None else most[path]))
    together = Together(within, size, size, tuple(sorted(domains)), int((codes < 0).sum()))
    first = [scheduler.answer_alone(signature, snapshot, expired).best_rows for scheduler, signature, _ in templates]
    known = [rows for rows in first if rows is not None]
    if len(known) == len(first):
        together, _ = with_first(together, np.concatenate(known), snapshot)
    return together, is_certain


def _room(
    templates: Sequence[TemplatePods], within: Within, values: Sequence[str], snapshot: Snapshot, expired: Expired
) -> int | None:
    """Return the number of pods of `templates` that fit in one domain, or None if it is not known."""
    cluster, placed = FillingCluster(isolated(snapshot)), 0
    for scheduler, signature, number in templates:
        pod = in_domain(WaitingPod(signature, running_pod(signature.info, {})), within, values)
        for _ in range(number):
            if not cluster.is_known_for(pod.signature):
                return None
            placement = scheduler.answer_alone(pod.signature, cluster.snapshot, expired)
            if placement.verdict == "Unknown":
                return None
            if placement.node is None:
                break
            cluster.add(pod.signature, pod.running, placement.node)
            placed += 1
    return placed
