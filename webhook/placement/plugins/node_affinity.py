"""NodeAffinity: nodeSelector, and node affinity of the pod and of the profile."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.index.node_selector import NodeAffinityTerms, any_matches, matches
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.selectors import NAME_FIELD
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult, Scope, default_normalize
from webhook.placement.framework.node_inclusion import required_affinity_matches
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON_POD = "node(s) didn't match Pod's node affinity/selector"
ERR_REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
ERR_REASON_CONFLICT = "pod affinity terms conflict"


class NodeAffinity:
    """Evaluate each distinct label value once. `added` is the affinity that the profile adds to every pod.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go
    """

    name = "NodeAffinity"
    scope = Scope.FACTS

    def __init__(self, added: NodeAffinityTerms = NodeAffinityTerms()) -> None:  # noqa: B008 - immutable
        self._added = added

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Return the nodes that `pod` names by `metadata.name`, if each of its terms names nodes."""
        names: set[str] = set()
        for term in pod.required or ():
            named = [frozenset(r.values) for r in term.fields if r.key == NAME_FIELD and r.operator == "In"]
            if not named:
                return ALL_NODES
            names |= frozenset.intersection(*named)
        if not pod.required:
            return ALL_NODES
        return PreFilterResult(node_names=frozenset(names)) if names else PreFilterResult(reason=ERR_REASON_CONFLICT)

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that lack a label of nodeSelector or of the domain, or that no required term matches."""
        enforced = self._added.required
        if not pod.node_selector and pod.required is None and not pod.domain and enforced is None:
            return ()
        matching = required_affinity_matches(pod, nodes, expired)
        for key, value in pod.domain:
            operator, values = ("Exists", ()) if value is None else ("In", (value,))
            matching = matching & nodes.labels.matches(key, operator, values)
        if enforced is None:
            return (Failure(ERR_REASON_POD, ~matching),)
        allowed = any_matches(enforced, nodes.labels, nodes.rows, expired)
        return (Failure(ERR_REASON_ENFORCED, ~allowed), Failure(ERR_REASON_POD, allowed & ~matching))

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return a higher score for a larger sum of the weights of matching preferred terms, or None without terms."""
        preferred = (*self._added.preferred, *pod.preferred)
        if not preferred:
            return None
        weights = np.zeros(len(rows), dtype=np.int64)
        for weight, term in preferred:
            weights += weight * matches(term, nodes.labels, nodes.rows, expired)[rows]
        return default_normalize(weights)
