"""A plain reference implementation of InterPodAffinity and PodTopologySpread: for each node, each term, each pod."""

import math
from collections import Counter
from collections.abc import Iterator

from tests.oracles.oracle_cluster import (
    Object,
    OracleCluster,
    OracleNode,
    labels_of,
    namespace_of,
    tolerations_of,
)
from tests.oracles.oracle_kube import label_selector_matches, required_node_affinity_matches, tolerates_any

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
_OWNERS = (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))


def _terms(pod: Object, kind: str) -> list[Object]:
    """Return the required terms of podAffinity or podAntiAffinity."""
    part = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return [_admitted(term, pod) for term in part.get(_REQUIRED) or []]


def _weighted_terms(pod: Object) -> list[tuple[int, Object]]:
    """Return the preferred terms of both, those of podAntiAffinity with negative weights."""
    affinity = pod["spec"].get("affinity") or {}
    return [
        (sign * each["weight"], _admitted(each["podAffinityTerm"], pod))
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for each in (affinity.get(kind) or {}).get(_PREFERRED) or []
    ]


def _admitted(term: Object, pod: Object) -> Object:
    """Return `term` as the API server stores it: with its label keys in the selector."""
    selector = term.get("labelSelector")
    if selector is None:
        return term
    added = [
        {"key": key, "operator": operator, "values": [labels_of(pod)[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or []
        if key in labels_of(pod)
    ]
    expressions = [*(selector.get("matchExpressions") or []), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}


def _speaks_of(term: Object, owner: Object, other: Object, cluster: OracleCluster) -> bool:
    """Return whether a term of the running pod `owner` selects the pod `other`."""
    namespaces, chooses = term.get("namespaces") or [], term.get("namespaceSelector")
    if not namespaces and chooses is None:
        namespaces = [namespace_of(owner)]
    if namespace_of(other) not in namespaces and not label_selector_matches(
        chooses, cluster.namespaces().get(namespace_of(other), {})
    ):
        return False
    return label_selector_matches(term.get("labelSelector"), labels_of(other))


def _selects(term: Object, pod: Object, other: Object, cluster: OracleCluster) -> bool:
    """Return whether a term of the pending `pod` selects `other`: namespaces are selected among the existing ones.

    An empty namespaceSelector chooses all.
    """
    chooses = term.get("namespaceSelector")
    if chooses is not None and not any(chooses.values()):
        return label_selector_matches(term.get("labelSelector"), labels_of(other))
    if chooses is not None:
        chosen = [name for name, labels in cluster.namespaces().items() if label_selector_matches(chooses, labels)]
        named = [*(term.get("namespaces") or []), *chosen]
        return namespace_of(other) in named and label_selector_matches(term.get("labelSelector"), labels_of(other))
    return _speaks_of(term, pod, other, cluster)


def _running(cluster: OracleCluster) -> Iterator[tuple[Object, OracleNode]]:
    return ((pod, node) for node in cluster.nodes for pod in node.pods)


def inter_pod_affinity(pod: Object, node: OracleNode, cluster: OracleCluster) -> list[str]:
    """Return the reasons of InterPodAffinity to reject `node`."""
    if not _affinity_holds(pod, node, cluster):
        return ["node(s) didn't match pod affinity rules"]
    for term in _terms(pod, "podAntiAffinity"):
        for other, there in _running(cluster):
            if _same_domain(term, node, there) and _selects(term, pod, other, cluster):
                return ["node(s) didn't match pod anti-affinity rules"]
    for other, there in _running(cluster):
        for term in _terms(other, "podAntiAffinity"):
            if _same_domain(term, node, there) and _speaks_of(term, other, pod, cluster):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"]
    return []


def skips_inter_pod_affinity(pod: Object, cluster: OracleCluster) -> bool:
    """Return whether the filter does not apply: `pod` has no required term, and no running pod excludes it anywhere."""
    if _terms(pod, "podAffinity") or _terms(pod, "podAntiAffinity"):
        return False
    return not any(
        _speaks_of(term, other, pod, cluster) and term["topologyKey"] in there.labels
        for other, there in _running(cluster)
        for term in _terms(other, "podAntiAffinity")
    )


def _same_domain(term: Object, node: OracleNode, other: OracleNode) -> bool:
    key = term["topologyKey"]
    return key in node.labels and node.labels[key] == other.labels.get(key)


def _affinity_holds(pod: Object, node: OracleNode, cluster: OracleCluster) -> bool:
    terms = _terms(pod, "podAffinity")
    if any(term["topologyKey"] not in node.labels for term in terms):
        return False
    if cluster.is_without_pods:
        return all(term.get("labelSelector") is not None for term in terms)
    friends = [
        there for other, there in _running(cluster) if all(_selects(term, pod, other, cluster) for term in terms)
    ]
    if all(any(_same_domain(term, node, there) for there in friends) for term in terms):
        return True
    nowhere = not any(term["topologyKey"] in there.labels for term in terms for there in friends)
    return nowhere and all(_selects(term, pod, pod, cluster) for term in terms)


def inter_pod_affinity_scores(pod: Object, nodes: list[OracleNode], cluster: OracleCluster) -> list[int] | None:
    """Return the scores of the feasible `nodes`, None if the plugin is skipped."""
    weights: Counter[tuple[str, str]] = Counter()
    counted = False
    for other, there in _running(cluster):
        matching = [each for each in _weighted_terms(pod) if _selects(each[1], pod, other, cluster)]
        matching += [(1, each) for each in _terms(other, "podAffinity") if _speaks_of(each, other, pod, cluster)]
        matching += [each for each in _weighted_terms(other) if _speaks_of(each[1], other, pod, cluster)]
        for weight, term in matching:
            if term["topologyKey"] in there.labels:
                counted = True
                weights[term["topologyKey"], there.labels[term["topologyKey"]]] += weight
    if not counted:
        return None
    sums = [sum(weights[pair] for pair in node.labels.items()) for node in nodes]
    least, most = min(sums), max(sums)
    return [math.trunc(100 * ((each - least) / (most - least))) if most > least else 0 for each in sums]


def _constraints(pod: Object, cluster: OracleCluster, action: str) -> list[Object]:
    own = pod["spec"].get("topologySpreadConstraints") or []
    if own:
        return [_with_label_keys(each, pod) for each in own if each["whenUnsatisfiable"] == action]
    selector = _default_selector(pod, cluster)
    if action == "DoNotSchedule" or not selector["matchExpressions"]:
        return []
    return [
        {"maxSkew": 3, "topologyKey": _HOSTNAME, "labelSelector": selector},
        {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector},
    ]


def _with_label_keys(constraint: Object, pod: Object) -> Object:
    selector = constraint.get("labelSelector")
    if selector is None:
        return constraint
    added = [
        {"key": key, "operator": "In", "values": [labels_of(pod)[key]]}
        for key in constraint.get("matchLabelKeys") or []
        if key in labels_of(pod)
    ]
    expressions = [*(selector.get("matchExpressions") or []), *added]
    return {**constraint, "labelSelector": {**selector, "matchExpressions": expressions}}


def _default_selector(pod: Object, cluster: OracleCluster) -> Object:
    """Return the combined selector of the Services and the controller of the pod."""
    expressions: list[Object] = []
    for service in cluster.of_kind("Service", namespace_of(pod)):
        selector = service["spec"].get("selector")
        if selector is not None and label_selector_matches({"matchLabels": selector}, labels_of(pod)):
            expressions += _as_expressions({"matchLabels": selector})
    for owner in pod["metadata"].get("ownerReferences") or []:
        if owner.get("controller") and (owner["apiVersion"], owner["kind"]) in _OWNERS:
            for found in cluster.of_kind(owner["kind"], namespace_of(pod)):
                if found["metadata"]["name"] == owner["name"]:
                    of_owner = found["spec"].get("selector") or {}
                    is_map = owner["kind"] == "ReplicationController"
                    expressions += _as_expressions({"matchLabels": of_owner} if is_map else of_owner)
    return {"matchExpressions": expressions}


def _as_expressions(selector: Object) -> list[Object]:
    labels = selector.get("matchLabels") or {}
    equal = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return [*equal, *(selector.get("matchExpressions") or [])]


def _pods_there(constraint: Object, pod: Object, node: OracleNode) -> int:
    selector = constraint.get("labelSelector")
    if selector is None or not _as_expressions(selector):
        return _assumed_there(constraint, pod, node)
    return sum(
        namespace_of(other) == namespace_of(pod)
        and "deletionTimestamp" not in other["metadata"]
        and label_selector_matches(selector, labels_of(other))
        for other in node.pods
        if other not in node.assumed
    ) + _assumed_there(constraint, pod, node)


def _assumed_there(constraint: Object, pod: Object, node: OracleNode) -> int:
    """Return the nominated pods among them: a pod that is being deleted counts, and an empty selector selects it."""
    return sum(
        namespace_of(other) == namespace_of(pod)
        and label_selector_matches(constraint.get("labelSelector"), labels_of(other))
        for other in node.assumed
    )


def _counts(constraint: Object, pod: Object, node: OracleNode) -> bool:
    """Return whether `node` counts by the policies of `constraint`."""
    honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    if honors_affinity and not required_node_affinity_matches(pod["spec"], node.labels, node.name):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
        hard = [taint for taint in node.taints if taint["effect"] in ("NoSchedule", "NoExecute")]
        return all(tolerates_any(tolerations_of(pod), taint) for taint in hard)
    return True


def pod_topology_spread(pod: Object, node: OracleNode, cluster: OracleCluster) -> list[str]:
    """Return the reasons of PodTopologySpread to reject `node`."""
    constraints = _constraints(pod, cluster, "DoNotSchedule")
    for constraint in constraints:
        key = constraint["topologyKey"]
        if key not in node.labels:
            return ["node(s) didn't match pod topology spread constraints (missing required label)"]
        found: Counter[str] = Counter()
        for each in cluster.nodes:
            if all(other["topologyKey"] in each.labels for other in constraints) and _counts(constraint, pod, each):
                found[each.labels[key]] += _pods_there(constraint, pod, each)
        least = min(found.values()) if len(found) >= constraint.get("minDomains", 1) else 0
        itself = label_selector_matches(constraint.get("labelSelector"), labels_of(pod))
        if found[node.labels[key]] + itself - least > constraint["maxSkew"]:
            return ["node(s) didn't match pod topology spread constraints"]
    return []


def pod_topology_spread_scores(pod: Object, nodes: list[OracleNode], cluster: OracleCluster) -> list[int] | None:
    """Return the scores of the feasible `nodes`, None if the plugin is skipped."""
    constraints = _constraints(pod, cluster, "ScheduleAnyway")
    if not constraints:
        return None
    needs_all = bool(pod["spec"].get("topologySpreadConstraints"))
    scored = [node for node in nodes if not needs_all or _has_all(node, constraints)]
    raw = {node.name: _raw_score(pod, node, scored, constraints, cluster, needs_all=needs_all) for node in scored}
    if not raw or max(raw.values()) == 0:
        return [100 if node.name in raw else 0 for node in nodes]
    least, most = min(raw.values()), max(raw.values())
    return [100 * (most + least - raw[node.name]) // most if node.name in raw else 0 for node in nodes]


def _has_all(node: OracleNode, constraints: list[Object]) -> bool:
    return all(constraint["topologyKey"] in node.labels for constraint in constraints)


def _raw_score(
    pod: Object,
    node: OracleNode,
    scored: list[OracleNode],
    constraints: list[Object],
    cluster: OracleCluster,
    *,
    needs_all: bool,
) -> int:
    score = 0.0
    for constraint in constraints:
        key = constraint["topologyKey"]
        if key not in node.labels:
            continue
        if key == _HOSTNAME:
            domains, count = len(scored), _pods_there(constraint, pod, node)
        else:
            domains = len({each.labels.get(key, "") for each in scored})
            count = sum(
                _pods_there(constraint, pod, each)
                for each in cluster.nodes
                if each.labels.get(key) == node.labels[key]
                and (not needs_all or _has_all(each, constraints))
                and _counts(constraint, pod, each)
            )
        score += count * math.log(domains + 2) + (constraint["maxSkew"] - 1)
    return math.floor(score + 0.5)
