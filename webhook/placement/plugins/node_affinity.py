"""NodeAffinity: nodeSelector and node affinity, required and preferred."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.labels import Mask
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.selectors import NAME_FIELD, field_requirement_matches
from webhook.placement.plugin import Failure, Preselection, default_normalize
from webhook.placement.pod_info import PodInfo, Requirement, Term

ERR_REASON_POD = "node(s) didn't match Pod's node affinity/selector"
ERR_REASON_CONFLICT = "pod affinity terms conflict"


class NodeAffinity:
    """Asks once for each value that a label has among the nodes.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go
    """

    name = "NodeAffinity"

    def pre_filter(self, pod: PodInfo) -> Preselection:
        """The nodes that `pod` names by `metadata.name`, where each of its terms names some."""
        names: frozenset[str] = frozenset()
        for term in pod.required or ():
            named = [frozenset(r.values) for r in term.fields if r.key == NAME_FIELD and r.operator == "In"]
            if not named:
                return Preselection()
            names |= frozenset.intersection(*named)
        if not pod.required:
            return Preselection()
        return Preselection(node_names=names) if names else Preselection(refusal=ERR_REASON_CONFLICT)

    def filter(self, pod: PodInfo, nodes: Snapshot) -> Sequence[Failure]:
        """The nodes that miss a label of nodeSelector, or that no required term matches."""
        if not pod.node_selector and pod.required is None:
            return ()
        matching = np.ones(len(nodes.nodes), dtype=np.bool_)
        for key, value in pod.node_selector:
            matching &= nodes.labels.matches(key, "In", (value,))
        if pod.required is not None:
            matching &= _any_matches(pod.required, nodes)
        return (Failure(ERR_REASON_POD, ~matching),)

    def skips(self, pod: PodInfo) -> bool:
        """Where `pod` prefers no nodes."""
        return not pod.preferred

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows) -> Column:
        """The larger the sum of the weights of preferred terms that match, the higher."""
        weights = np.zeros(len(rows), dtype=np.int64)
        for weight, term in pod.preferred:
            weights += weight * _matches(term, nodes)[rows]
        return default_normalize(weights)


def _any_matches(terms: Sequence[Term], nodes: Snapshot) -> Mask:
    matching = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for term in terms:
        matching |= _matches(term, nodes)
    return matching


def _matches(term: Term, nodes: Snapshot) -> Mask:
    """Which nodes satisfy every requirement of `term`; an empty one matches none."""
    matching = np.full(len(nodes.nodes), bool(term.expressions or term.fields))
    for requirement in term.expressions:
        matching &= nodes.labels.matches(*requirement)
    for requirement in term.fields:
        matching &= _field_matches(requirement, nodes)
    return matching


def _field_matches(requirement: Requirement, nodes: Snapshot) -> Mask:
    raw = requirement._asdict()
    matching = np.full(len(nodes.nodes), field_requirement_matches(raw, ""))
    if requirement.key == NAME_FIELD:
        for name in requirement.values:
            row = nodes.rows.get(name)
            if row is not None:
                matching[row] = field_requirement_matches(raw, name)
    return matching
