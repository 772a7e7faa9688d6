"""Random affinity to other pods, spreading, and what selects pods, over so few labels that they meet."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object

Object = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMESPACES = ("default", "other", "third")
_TOPOLOGY_KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "rack")
_LABELS = {"app": ("web", "db"), "tier": ("a", "b"), "version": ("1", "2")}

_any_labels = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in _LABELS.items()})
pod_labels = st.one_of(st.just({"app": "web"}), st.just({"app": "web", "version": "1"}), _any_labels)
_DOMAINS = {"topology.kubernetes.io/zone": ("x", "x", "y", "z"), "rack": ("1", "2", "3")}
_all_domains = st.fixed_dictionaries({key: st.sampled_from(names) for key, names in _DOMAINS.items()})
_some_domains = st.fixed_dictionaries({}, optional={key: st.sampled_from(names) for key, names in _DOMAINS.items()})
topology_labels = st.one_of(_all_domains, _all_domains, _some_domains)


def _without_nulls(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


def _objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries(fields).map(_without_nulls)


def _sometimes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


@st.composite
def _expressions(draw: Draw) -> Object:
    key = draw(st.sampled_from(tuple(_LABELS)))
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")))
    values = draw(st.lists(st.sampled_from(_LABELS[key]), min_size=1, max_size=2))
    return {"key": key, "operator": operator} | ({"values": values} if operator in ("In", "NotIn") else {})


_any_selectors = _objects(
    matchLabels=_sometimes(st.fixed_dictionaries({}, optional={"app": st.sampled_from(_LABELS["app"])})),
    matchExpressions=_sometimes(st.lists(_expressions(), max_size=1)),
)
_selectors: st.SearchStrategy[Object] = st.one_of(st.just({"matchLabels": {"app": "web"}}), st.just({}), _any_selectors)
_namespace_selectors = st.sampled_from(
    (
        {},
        {"matchLabels": {"team": "a"}},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
        {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    )
)


@st.composite
def _terms(draw: Draw) -> Object:
    term: Object = {"topologyKey": draw(st.sampled_from(_TOPOLOGY_KEYS))}
    selector = draw(_sometimes(_selectors))
    if selector is not None:
        term["labelSelector"] = selector
        spoken = {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", []))}
        free = [key for key in _LABELS if key not in spoken]
        field = draw(st.sampled_from((None, None, "matchLabelKeys", "mismatchLabelKeys")))
        if field and free:
            term[field] = [draw(st.sampled_from(free))]
    namespaces = draw(_sometimes(st.lists(st.sampled_from(NAMESPACES), max_size=2)))
    chooses = draw(_sometimes(_namespace_selectors))
    return term | _without_nulls({"namespaces": namespaces, "namespaceSelector": chooses})


_weighted_terms = _objects(weight=st.sampled_from((1, 50, 100)), podAffinityTerm=_terms())
_required = st.lists(_terms(), min_size=1, max_size=2)
_parts = _objects(
    requiredDuringSchedulingIgnoredDuringExecution=_sometimes(_required),
    preferredDuringSchedulingIgnoredDuringExecution=_sometimes(st.lists(_weighted_terms, min_size=1, max_size=2)),
)
pod_affinities = _objects(podAffinity=_sometimes(_parts), podAntiAffinity=_sometimes(_parts))


@st.composite
def spread_constraints(draw: Draw) -> Object:
    """A topology spread constraint."""
    action = draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway")))
    policies = st.sampled_from((None, None, "Honor", "Ignore"))
    constraint = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from(_TOPOLOGY_KEYS)),
        "whenUnsatisfiable": action,
        "labelSelector": draw(st.one_of(_selectors, _sometimes(_selectors))),
        "nodeAffinityPolicy": draw(policies),
        "nodeTaintsPolicy": draw(policies),
        "minDomains": draw(_sometimes(st.integers(1, 4))) if action == "DoNotSchedule" else None,
    }
    if constraint["labelSelector"] is not None and draw(st.booleans()):
        constraint["matchLabelKeys"] = [draw(st.sampled_from(tuple(_LABELS)))]
    return _without_nulls(constraint)


owners = st.sampled_from(
    [
        {"apiVersion": version, "kind": kind, "name": "mine", "uid": "u", "controller": True}
        for version, kind in (("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"), ("batch/v1", "Job"))
    ]
)


@st.composite
def others(draw: Draw) -> list[Object]:
    """The namespaces, Services and controllers of a cluster; the controller that `owners` name among them."""
    found: list[Object] = []
    for name in NAMESPACES:
        labels = draw(st.sampled_from(({}, {"team": "a"}, {"team": "b"})))
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    app = {"app": draw(st.sampled_from(_LABELS["app"]))}
    owned = {"metadata": {"name": "mine", "namespace": "default"}}
    replica_set = {"selector": draw(st.sampled_from(({"matchLabels": app}, {}, {"matchLabels": {}})))}
    found.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": replica_set, **owned})
    found.append({"apiVersion": "v1", "kind": "ReplicationController", "spec": {"selector": app}, **owned})
    for index in range(draw(st.integers(0, 2))):
        spec = draw(st.sampled_from(({}, {"selector": app}, {"selector": {**app, "tier": "a"}})))
        metadata = {"name": f"s{index}", "namespace": draw(st.sampled_from(NAMESPACES[:2]))}
        found.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    return found


_namespaces = st.sampled_from(("default", "default", *NAMESPACES))


@st.composite
def _pods(draw: Draw, name: str, *, minds: bool) -> Object:
    metadata = {"name": name, "namespace": draw(_namespaces), "labels": draw(pod_labels)}
    requests = draw(st.sampled_from(({}, {"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"})))
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    spec = {"containers": [container], "affinity": draw(pod_affinities) if minds else None}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _without_nulls(spec)}


@st.composite
def pending_pods(draw: Draw) -> Object:
    """A pod that waits for a node and minds other pods, by its affinity, its spread constraints or both."""
    kind = draw(st.sampled_from(("affinity", "spread", "spread", "both", "default")))
    pod: Object = draw(_pods("incoming", minds=kind in ("affinity", "both")))
    if kind in ("spread", "both"):
        pod["spec"]["topologySpreadConstraints"] = draw(st.lists(spread_constraints(), min_size=1, max_size=2))
    pod["spec"] |= _without_nulls(
        {
            "nodeSelector": draw(st.sampled_from((None, None, None, {"topology.kubernetes.io/zone": "x"}))),
            "tolerations": draw(st.sampled_from((None, [{"operator": "Exists"}]))),
        }
    )
    owner = draw(_sometimes(owners))
    if owner and pod["metadata"]["namespace"] == "default":
        pod["metadata"]["ownerReferences"] = [owner]
    return pod


@st.composite
def _running_pods(draw: Draw, name: str, nodes: int) -> Object:
    pod: Object = draw(_pods(name, minds=draw(st.integers(0, 3)) == 3))
    pod["spec"]["nodeName"] = f"node-{draw(st.integers(0, nodes - 1))}"
    pod["status"] = {"phase": "Running"}
    if draw(st.integers(0, 4)) == 4:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


@st.composite
def clusters(draw: Draw) -> tuple[list[Object], list[Object], list[Object]]:
    """The nodes of a cluster in topology domains, its bound pods, and the objects that select pods."""
    nodes = []
    for index in range(draw(st.integers(2, 6))):
        taints = draw(st.sampled_from(([], [], [], [], ["use=x:NoSchedule"], ["use=x:PreferNoSchedule"])))
        node = make_node_object(f"node-{index}", labels=draw(topology_labels), taints=taints, capacity={"cpu": 4})
        if draw(st.integers(0, 7)) == 7:
            del node["metadata"]["labels"]["kubernetes.io/hostname"]
        nodes.append(node)
    pods = [
        draw(_running_pods(f"pod-{index}", len(nodes))) for index in range(draw(st.sampled_from((0, 4, 7, 10, 12))))
    ]
    return nodes, pods, draw(others())
