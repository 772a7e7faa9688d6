"""InterPodAffinity: pods that belong together share a topology domain, pods that do not are kept apart."""

from collections.abc import Iterable, Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_classes import CarriedTerm
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.index.running_pods import Codes
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.label_selector import LabelSelector, selector_matches
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.framework.interface import MAX_NODE_SCORE, Failure
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_AFFINITY = "node(s) didn't match pod affinity rules"
ERR_REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
ERR_REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity:
    """Counts pods by topology domain: those that the pod's terms select, and those whose terms select the pod.

    The latter are found by the labels of the pod, so that terms that do not concern it cost nothing.
    `hard_pod_affinity_weight` is what a neighbour counts whom a running pod has required.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/filtering.go and scoring.go
    """

    name = "InterPodAffinity"

    def __init__(
        self, hard_pod_affinity_weight: int = 1, *, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        self._hard_pod_affinity_weight = hard_pod_affinity_weight
        self._ignore_preferred_terms_of_existing_pods = ignore_preferred_terms_of_existing_pods

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The nodes where the pod's required terms do not hold, or the anti-affinity of running pods bars it.

        Of an emptied cluster only the topology counts: the pods that are wanted near may come to any node.
        """
        terms = pod.inter_pod.terms
        barred = _barred(pod, nodes, expired)
        if barred is None and not terms.required and not terms.anti_required:
            return ()
        failures = []
        accepted = np.ones(len(nodes.nodes), dtype=np.bool_)
        for reason, rejected in (
            (ERR_REASON_AFFINITY, _without_wanted(pod, nodes, expired) if terms.required else None),
            (ERR_REASON_ANTI_AFFINITY, _with_unwanted(pod, nodes, expired) if terms.anti_required else None),
            (ERR_REASON_EXISTING_ANTI_AFFINITY, barred),
        ):
            if rejected is not None:
                failures.append(Failure(reason, rejected & accepted))
                accepted &= ~rejected
        return failures

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """With required terms of its own, or where the anti-affinity of running pods bars it from a node."""
        terms = pod.inter_pod.terms
        if terms.required or terms.anti_required:
            return True
        barred = _barred(pod, nodes, expired)
        return barred is not None and bool(barred.any())

    def skips(self, pod: PodInfo) -> bool:
        """Where only the pod's own preferences would count, and it has none."""
        return self._ignore_preferred_terms_of_existing_pods and not pod.inter_pod.terms.preferred

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """The more weight in the node's domains, the higher; None where no running pod counts on any node."""
        counts = DomainCounts(nodes)
        for weight, term in in_time(pod.inter_pod.terms.preferred, expired):
            counts.add(term.topology_key, _selected_rows(term, nodes, expired), weight)
        self._count_existing(in_time(_concerning(pod, nodes), expired), nodes, counts)
        if counts.is_empty:
            return None
        weights = counts.sums(rows)
        lowest = int(weights.min())
        difference = int(weights.max()) - lowest
        if difference == 0:
            return np.zeros_like(weights)
        return (MAX_NODE_SCORE * ((weights - lowest) / difference)).astype(np.int64)

    def _count_existing(self, concerning: Iterable[CarriedTerm], nodes: Snapshot, counts: DomainCounts) -> None:
        """Count the running pods whose terms speak of the pod, each with what its terms weigh."""
        for carried in concerning:
            weight = carried.weight if carried.kind == "preferred" else self._hard_pod_affinity_weight
            if carried.kind != "bars" and weight:
                pods, times = nodes.pods.carrier_rows(carried)
                counts.add(carried.term.topology_key, pods, weight * times)


def _without_wanted(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
    """The nodes that lack a topology of the required terms, or, there, a pod that all these terms select.

    Where there is no such pod at all and the pod selects itself, it may be the first of its kind.
    """
    terms = pod.inter_pod.terms.required
    complete = np.ones(len(nodes.nodes), dtype=np.bool_)
    for term in in_time(terms, expired):
        complete &= nodes.labels.domains(term.topology_key).codes >= 0
    if nodes.is_without_pods:
        # Any pod may still come, but none that a term without a selector selects.
        return ~complete | any(term.selector is None for term in terms)
    selected = np.ones(nodes.pods.class_count, dtype=np.bool_)
    for term in in_time(terms, expired):
        selected &= nodes.pods.selected(*_selection(term, nodes, expired), expired)
    wanted = nodes.pods.rows_of(selected)
    together, is_anywhere = complete.copy(), False
    for key in in_time({term.topology_key for term in terms}, expired):
        sharing = _sharing(key, wanted, nodes)
        is_anywhere |= bool(sharing.any())
        together &= sharing
    if not is_anywhere and _selects_itself(pod, nodes, expired):
        return ~complete
    return ~together


def _with_unwanted(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
    """The nodes in whose domain runs a pod that one of the required anti-affinity terms selects."""
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for term in in_time(pod.inter_pod.terms.anti_required, expired):
        found |= _sharing(term.topology_key, _selected_rows(term, nodes, expired), nodes)
    return found


def _barred(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask | None:
    """The nodes in whose domain runs a pod with required anti-affinity to `pod`; None where no pod has such."""
    barring = [carried for carried in in_time(_concerning(pod, nodes), expired) if carried.kind == "bars"]
    if not barring:
        return None
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for carried in in_time(barring, expired):
        found |= _sharing(carried.term.topology_key, nodes.pods.carrier_rows(carried)[0], nodes)
    return found


def _concerning(pod: PodInfo, nodes: Snapshot) -> Iterable[CarriedTerm]:
    peers = pod.inter_pod
    return nodes.pods.carried(peers.namespace, nodes.namespace_labels(peers.namespace), dict(peers.labels))


def _sharing(topology_key: str, pods: Codes, nodes: Snapshot) -> Mask:
    """The nodes of the domains where `pods` run."""
    codes, size = nodes.labels.domains(topology_key)
    domains = np.zeros(size + 1, dtype=np.bool_)
    domains[codes[pods]] = True
    # The last stands for the nodes that are in no domain.
    domains[-1] = False
    sharing: Mask = domains[codes]
    return sharing


def _selected_rows(term: PodTerm, nodes: Snapshot, expired: Expired) -> Codes:
    return nodes.pods.rows_selected(*_selection(term, nodes, expired), expired)


def _selects_itself(pod: PodInfo, nodes: Snapshot, expired: Expired) -> bool:
    labels = dict(pod.inter_pod.labels)
    return all(
        (namespaces is None or pod.inter_pod.namespace in namespaces) and selector_matches(selector, labels)
        for namespaces, selector in (_selection(term, nodes, expired) for term in pod.inter_pod.terms.required)
    )


def _selection(term: PodTerm, nodes: Snapshot, expired: Expired) -> tuple[frozenset[str] | None, LabelSelector | None]:
    """The namespaces (None: all) and the labels of the pods that `term` speaks of.

    A namespace that is not known is chosen by its name alone. kube-scheduler adds the chosen namespaces to the named
    ones, then asks the selector once more about a namespace without labels; so one that no label has to satisfy, such
    as a NotIn alone, chooses all.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/plugin.go,
    mergeAffinityTermNamespacesIfNotEmpty, to which the term is passed by value
    """
    chooses = term.namespace_selector
    if chooses is None:
        return term.namespaces, term.selector
    if selector_matches(chooses, {}):
        return None, term.selector
    known = in_time(nodes.namespaces.items(), expired)
    chosen = {name for name, namespace in known if selector_matches(chooses, namespace.labels)}
    return term.namespaces | chosen, term.selector
