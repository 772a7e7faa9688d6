"""InterPodAffinity: pod affinity and anti-affinity in topology domains."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_classes import CarriedTerm
from webhook.cluster.index.pod_rows import Codes
from webhook.cluster.index.pod_term import PodTerm, WeightedPodTerm
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.release import Change, Release
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.framework.interface import MAX_NODE_SCORE, Failure
from webhook.placement.pod.pod_info import PodInfo

# In place of the weight of a required term of a running pod, which is that of the profile.
_REQUIRED = 0
ERR_REASON_AFFINITY = "node(s) didn't match pod affinity rules"
ERR_REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
ERR_REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

Selection = tuple[frozenset[str] | None, LabelSelector | None]
"""The namespaces, or None for all, and the label selector of some pods."""


class InterPodAffinity:
    """Count by topology domain the pods that the pod's terms select, and the pods whose terms select the pod.

    Terms of running pods are indexed by labels, so that terms that do not select the pod cost nothing.
    `hard_pod_affinity_weight` is the weight of the required affinity terms of running pods. `linked` is the Kubernetes
    release that a batch scheduler is built with, or None to use the release of the cluster.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/filtering.go and scoring.go
    """

    name = "InterPodAffinity"

    def __init__(
        self,
        hard_pod_affinity_weight: int = 1,
        *,
        ignore_preferred_terms_of_existing_pods: bool = False,
        linked: Release | None = None,
    ) -> None:
        self._hard_pod_affinity_weight = hard_pod_affinity_weight
        self._ignore_preferred_terms_of_existing_pods = ignore_preferred_terms_of_existing_pods
        self._linked = linked

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that violate the pod's required terms, or the required anti-affinity of running pods.

        On nodes without pods, only the topology key counts, because a selected pod may start on any node.
        """
        terms = pod.inter_pod.terms
        existing = _violates_existing_anti_affinity(pod, nodes, expired)
        if existing is None and not terms.required and not terms.anti_required:
            return ()
        failures = []
        accepted = np.ones(len(nodes.nodes), dtype=np.bool_)
        for reason, rejected in (
            (ERR_REASON_AFFINITY, self._violates_affinity(pod, nodes, expired) if terms.required else None),
            (
                ERR_REASON_ANTI_AFFINITY,
                self._violates_anti_affinity(pod, nodes, expired) if terms.anti_required else None,
            ),
            (ERR_REASON_EXISTING_ANTI_AFFINITY, existing),
        ):
            if rejected is not None:
                failures.append(Failure(reason, rejected & accepted))
                accepted &= ~rejected
        return failures

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether the pod has required terms, or the anti-affinity of running pods excludes a node."""
        terms = pod.inter_pod.terms
        if terms.required or terms.anti_required:
            return True
        existing = _violates_existing_anti_affinity(pod, nodes, expired)
        return existing is not None and bool(existing.any())

    def skips(self, pod: PodInfo) -> bool:
        """Return whether scoring is skipped, because only the pod's preferred terms count and it has none."""
        return self._ignore_preferred_terms_of_existing_pods and not pod.inter_pod.terms.preferred

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return scores that grow with the weight in the domains of a node, or None if running pods have no weight."""
        return None if self.skips(pod) else normalized(self.counts(pod, nodes, expired), rows)

    def counts(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> DomainCounts:
        """Return the weight of the running pods in each domain."""
        counts = DomainCounts(nodes.labels)
        for weight, term in in_time(pod.inter_pod.terms.preferred, expired):
            counts.add(term.topology_key, self._selected_rows(term, nodes, expired), weight)
        self._count_existing(in_time(_terms_selecting(pod, nodes), expired), nodes, counts)
        return counts

    def terms_selecting(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> frozenset[WeightedPodTerm]:
        """Return the terms of running pods that select `pod` and attract or repel it."""
        return frozenset(
            WeightedPodTerm(carried.weight if carried.kind == "preferred" else _REQUIRED, carried.term)
            for carried in in_time(_terms_selecting(pod, nodes), expired)
            if carried.kind != "anti_required"
        )

    def weights_of(
        self,
        running: RunningPod,
        preferred: Sequence[WeightedPodTerm],
        selecting: frozenset[WeightedPodTerm],
        nodes: Snapshot,
        expired: Expired = never,
    ) -> list[tuple[str, int]]:
        """Return (topology key, weight) for each term by which the pod `running` counts.

        These are the terms in `preferred` of the pending pod that select `running`, and the terms of `running` in
        `selecting`, which select the pending pod.
        """
        found = []
        for weight, term in in_time(preferred, expired):
            if selects(self.selection(term, nodes, expired), running.namespace, running.labels):
                found.append((term.topology_key, weight))
        found += [
            (term.topology_key, weight) for weight, term in running.terms.preferred if (weight, term) in selecting
        ]
        if self._hard_pod_affinity_weight:
            of_required = [term for term in running.terms.required if (_REQUIRED, term) in selecting]
            found += [(term.topology_key, self._hard_pod_affinity_weight) for term in of_required]
        return found

    def _count_existing(self, concerning: Iterable[CarriedTerm], nodes: Snapshot, counts: DomainCounts) -> None:
        for carried in concerning:
            weight = carried.weight if carried.kind == "preferred" else self._hard_pod_affinity_weight
            if carried.kind != "anti_required" and weight:
                pods, times = nodes.pods.carrier_rows(carried)
                counts.add(carried.term.topology_key, pods, weight * times)

    def _violates_affinity(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
        """Return the nodes that lack a topology key of the required terms, or a pod in the domain that all select.

        If no pod in the cluster is selected and the pod selects itself, it may be the first pod.
        """
        terms = pod.inter_pod.terms.required
        if nodes.is_without_pods:
            # Any pod may start later, but a term without a selector selects none.
            return ~_has_all_domains(terms, nodes, expired) | any(term.selector is None for term in terms)
        return ~self.nodes_near_others(pod, nodes, 0, expired)

    def nodes_near_others(self, pod: PodInfo, nodes: Snapshot, leaving: Column | int, expired: Expired = never) -> Mask:
        """Return the nodes that the required terms accept once `leaving` of the pods that all of them select have left.

        For each node, only its own pods leave. The pod may be the first of the pods that it selects.
        """
        terms = pod.inter_pod.terms.required
        rows = self.selected_by_all(terms, nodes, expired)
        complete = _has_all_domains(terms, nodes, expired)
        together, is_anywhere = complete.copy(), np.zeros_like(complete)
        for key in in_time({term.topology_key for term in terms}, expired):
            codes, size = nodes.labels.domains(key)
            domains = codes[rows]
            domains = domains[domains >= 0]
            # The last count stands for nodes in no domain.
            together &= np.bincount(domains, minlength=size + 1)[codes] > leaving
            is_anywhere |= len(domains) > leaving
        if not is_anywhere.all() and self.selects_itself(pod, nodes, expired):
            together |= ~is_anywhere
        return complete & together

    def selected_by_all(self, terms: Sequence[PodTerm], nodes: Snapshot, expired: Expired = never) -> Codes:
        """Return the row of each pod that all `terms` select."""
        selected = np.ones(nodes.pods.class_count, dtype=np.bool_)
        for term in in_time(terms, expired):
            selected &= nodes.pods.selected(*self.selection(term, nodes, expired), expired)
        return nodes.pods.rows_of(selected)

    def _violates_anti_affinity(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
        found = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for term in in_time(pod.inter_pod.terms.anti_required, expired):
            found |= _nodes_sharing_domain(term.topology_key, self._selected_rows(term, nodes, expired), nodes)
        return found

    def _selected_rows(self, term: PodTerm, nodes: Snapshot, expired: Expired) -> Codes:
        return nodes.pods.rows_selected(*self.selection(term, nodes, expired), expired)

    def selects_itself(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> bool:
        """Return whether all required terms of `pod` select the pod itself."""
        labels = dict(pod.inter_pod.labels)
        selections = (self.selection(term, nodes, expired) for term in pod.inter_pod.terms.required)
        return all(selects(each, pod.inter_pod.namespace, labels) for each in selections)

    def selection(self, term: PodTerm, nodes: Snapshot, expired: Expired) -> Selection:
        """Return the namespaces (None means all) and the label selector of the pods that `term` selects.

        A namespace that is not known can only be selected by name. kube-scheduler adds the namespaces that the selector
        selects to the named ones. Up to 1.36, it then also matches the selector against a namespace without labels. So
        a selector that requires no label, such as a single NotIn, selects all namespaces.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/plugin.go,
        mergeAffinityTermNamespacesIfNotEmpty, to which these releases pass the term by value
        """
        chooses = term.namespace_selector
        if chooses is None:
            return term.namespaces, term.selector
        release = self._linked or nodes.release
        is_broken = not release.has(Change.NAMESPACES_MATCH_BY_LABELS)
        if not chooses or (is_broken and selector_matches(chooses, {})):
            return None, term.selector
        known = in_time(nodes.namespaces.items(), expired)
        chosen = {name for name, namespace in known if selector_matches(chooses, namespace.labels)}
        return term.namespaces | chosen, term.selector


def selects(selection: Selection, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether `selection` has a pod with `labels` in `namespace`."""
    namespaces, selector = selection
    return (namespaces is None or namespace in namespaces) and selector_matches(selector, labels)


def normalized(counts: DomainCounts, rows: Rows) -> Column | None:
    """Return the scores of `rows` for the weight in their domains, or None if no running pod has weight on any node."""
    if counts.is_empty:
        return None
    weights = counts.of_nodes.take(rows)
    lowest = int(np.minimum.reduce(weights))
    difference = int(np.maximum.reduce(weights)) - lowest
    if difference == 0:
        return np.zeros(len(rows), dtype=np.int64)
    scores = (weights - lowest) / difference
    scores *= MAX_NODE_SCORE
    return scores.astype(np.int64)


def _violates_existing_anti_affinity(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask | None:
    """Return the nodes whose domain has a pod with required anti-affinity to `pod`, or None if there is no such pod."""
    if not nodes.pods.classes.repels:
        return None
    anti_required = [
        carried for carried in in_time(_terms_selecting(pod, nodes), expired) if carried.kind == "anti_required"
    ]
    if not anti_required:
        return None
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for carried in in_time(anti_required, expired):
        found |= _nodes_sharing_domain(carried.term.topology_key, nodes.pods.carrier_rows(carried)[0], nodes)
    return found


def _terms_selecting(pod: PodInfo, nodes: Snapshot) -> Iterable[CarriedTerm]:
    inter_pod = pod.inter_pod
    return nodes.pods.carried(inter_pod.namespace, nodes.namespace_labels(inter_pod.namespace), dict(inter_pod.labels))


def _has_all_domains(terms: Sequence[PodTerm], nodes: Snapshot, expired: Expired) -> Mask:
    complete = np.ones(len(nodes.nodes), dtype=np.bool_)
    for term in in_time(terms, expired):
        complete &= nodes.labels.domains(term.topology_key).codes >= 0
    return complete


def _nodes_sharing_domain(topology_key: str, pods: Codes, nodes: Snapshot) -> Mask:
    codes, size = nodes.labels.domains(topology_key)
    domains = np.zeros(size + 1, dtype=np.bool_)
    domains[codes[pods]] = True
    # The last entry stands for nodes in no domain.
    domains[-1] = False
    sharing: Mask = domains[codes]
    return sharing
