"""Required pod affinity and anti-affinity between a pending pod and running pods, as numbers.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, updateWithPod
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.domain_counts import DomainCounts
from webhook.placement.plugins.inter_pod_affinity import (
    ERR_REASON_ANTI_AFFINITY,
    ERR_REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from webhook.placement.pod.pod_info import PodInfo

_Selection = tuple[frozenset[str] | None, LabelSelector | None]


class Repulsion(NamedTuple):
    """Required anti-affinity with one topology key, between the pending pod and running pods.

    `of` returns the number of terms between the pending pod and a running pod. `here` is their sum over the running
    pods in the domain of each node; the nodes in the mask `labelled` are in a domain.
    """

    reason: str
    of: Callable[[RunningPod], int]
    here: Column
    labelled: Mask


class Affinity:
    """The affinity of `pod` to running pods by its required terms, which it has, on `nodes`."""

    def __init__(self, plugin: InterPodAffinity, pod: PodInfo, nodes: Snapshot, expired: Expired) -> None:
        self._pod, self._nodes, self._expired = pod, nodes, expired
        terms = pod.inter_pod.terms.required
        self._keys = {term.topology_key for term in terms}
        self._selections = [plugin.selection(term, nodes, expired) for term in in_time(terms, expired)]

    def is_selected(self, running: RunningPod) -> bool:
        """Return whether all terms select `running`."""
        return all(_selects(each, running.namespace, running.labels) for each in self._selections)

    def near_others(self, leaving: Column) -> Mask:
        """Return the nodes that the terms accept once `leaving` of the selected pods of the node have left.

        For each node, only its own pods leave. The pod may be the first of those that it selects.
        """
        nodes, pod = self._nodes, self._pod.inter_pod
        selected = np.ones(nodes.pods.class_count, dtype=np.bool_)
        for each in in_time(self._selections, self._expired):
            selected &= nodes.pods.selected(*each, self._expired)
        rows = nodes.pods.rows_of(selected)
        complete = np.ones(len(nodes.nodes), dtype=np.bool_)
        together, is_anywhere = complete.copy(), np.zeros_like(complete)
        for key in in_time(self._keys, self._expired):
            codes, counts = nodes.labels.domains(key).codes, DomainCounts(nodes.labels)
            counts.add(key, rows, 1)
            complete &= codes >= 0
            together &= counts.of_nodes > leaving
            is_anywhere |= np.count_nonzero(codes[rows] >= 0) > leaving
        if all(_selects(each, pod.namespace, dict(pod.labels)) for each in self._selections):
            together |= ~is_anywhere
        return complete & together


def repulsions(plugin: InterPodAffinity, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterator[Repulsion]:
    """Yield the required anti-affinity of `pod`, then that of running pods to it, by topology key."""
    own: dict[str, list[_Selection]] = {}
    for term in in_time(pod.inter_pod.terms.anti_required, expired):
        own.setdefault(term.topology_key, []).append(plugin.selection(term, nodes, expired))
    for key, selections in own.items():
        counts = DomainCounts(nodes.labels)
        for selection in in_time(selections, expired):
            counts.add(key, nodes.pods.rows_selected(*selection, expired), 1)
        of = partial(_terms_selecting, selections)
        yield Repulsion(ERR_REASON_ANTI_AFFINITY, of, counts.of_nodes, nodes.labels.domains(key).codes >= 0)
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
        yield Repulsion(ERR_REASON_EXISTING_ANTI_AFFINITY, of, counts.of_nodes, nodes.labels.domains(key).codes >= 0)


def _terms_selecting(selections: Iterable[_Selection], running: RunningPod) -> int:
    return sum(_selects(each, running.namespace, running.labels) for each in selections)


def _terms_among(terms: set[PodTerm], running: RunningPod) -> int:
    return sum(each in terms for each in running.terms.anti_required)


def _selects(selection: _Selection, namespace: str, labels: Mapping[str, str]) -> bool:
    namespaces, selector = selection
    return (namespaces is None or namespace in namespaces) and selector_matches(selector, labels)
