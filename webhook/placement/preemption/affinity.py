"""Required pod affinity and anti-affinity between a pending pod and running pods, as numbers.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, updateWithPod
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import LabelSelector
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.plugins.inter_pod_affinity import (
    ERR_REASON_ANTI_AFFINITY,
    ERR_REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
    Selection,
    selects,
)
from webhook.placement.pod.pod_info import PodInfo


class Repulsion(NamedTuple):
    """Required anti-affinity with one topology key, between the pending pod and running pods.

    `of` returns the number of terms between the pending pod and a running pod, which depends on `selectors`, or if
    these are None, on the terms of the running pod. `here` is their sum over the running pods in the domain of each
    node; the nodes in the mask `labelled` are in a domain.
    """

    reason: str
    of: Callable[[RunningPod], int]
    selectors: Sequence[LabelSelector | None] | None
    here: Column
    labelled: Mask


def selectors_of(selections: Iterable[Selection]) -> list[LabelSelector | None]:
    """Return the label selectors of `selections`."""
    return [selector for _, selector in selections]


def is_selected(selections: Iterable[Selection], running: RunningPod) -> int:
    """Return 1 if all `selections` have `running`, else 0."""
    return int(all(selects(each, running.namespace, running.labels) for each in selections))


def repulsions(plugin: InterPodAffinity, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterator[Repulsion]:
    """Yield the required anti-affinity of `pod`, then that of running pods to it, by topology key."""
    own: dict[str, list[Selection]] = {}
    for term in in_time(pod.inter_pod.terms.anti_required, expired):
        own.setdefault(term.topology_key, []).append(plugin.selection(term, nodes, expired))
    for key, selections in own.items():
        counts = DomainCounts(nodes.labels)
        for selection in in_time(selections, expired):
            counts.add(key, nodes.pods.rows_selected(*selection, expired), 1)
        of = partial(_terms_selecting, selections)
        labelled = nodes.labels.domains(key).codes >= 0
        yield Repulsion(ERR_REASON_ANTI_AFFINITY, of, selectors_of(selections), counts.of_nodes, labelled)
    namespace, labels = pod.inter_pod.namespace, dict(pod.inter_pod.labels)
    selecting: dict[str, tuple[DomainCounts, set[PodTerm]]] = {}
    for carried in in_time(nodes.pods.carried(namespace, nodes.namespace_labels(namespace), labels), expired):
        if carried.kind == "anti_required":
            key = carried.term.topology_key
            counts, terms = selecting.setdefault(key, (DomainCounts(nodes.labels), set()))
            counts.add(key, *nodes.pods.carrier_rows(carried))
            terms.add(carried.term)
    for key, (counts, terms) in selecting.items():
        of = partial(_terms_among, terms)
        labelled = nodes.labels.domains(key).codes >= 0
        yield Repulsion(ERR_REASON_EXISTING_ANTI_AFFINITY, of, None, counts.of_nodes, labelled)


def _terms_selecting(selections: Iterable[Selection], running: RunningPod) -> int:
    return sum(selects(each, running.namespace, running.labels) for each in selections)


def _terms_among(terms: set[PodTerm], running: RunningPod) -> int:
    return sum(each in terms for each in running.terms.anti_required)
