"""Compare predictions for pod affinity, anti-affinity and topology spread with the real kube-scheduler."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.on_cluster.worlds import Worlds
from tests.support.programs.messages import first_sentence
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"
_KINDS = (("v1", "Node"), ("v1", "Namespace"), ("v1", "Pod"), ("v1", "Service"), ("apps/v1", "ReplicaSet"))
_WEB = {"matchLabels": {"app": "web"}}
_DB = {"matchLabels": {"app": "db"}}


@lru_cache(maxsize=1)
def _snapshot(cluster: Cluster) -> Snapshot:
    """The cluster, as each of its tests finds it."""
    documents = [
        Document("cluster", each)
        for api_version, kind in _KINDS
        for each in cluster.client.list(kind, api_version=api_version)
    ]
    return snapshot_from_documents(documents)


def _predict(cluster: Cluster, pod: PodBuilder) -> Placement:
    """The placement of `pod`, as it is before the API server has stored it."""
    return Scheduler().place(pod.namespace(cluster.namespace).obj(), _snapshot(cluster))


def _term(selector: Object | None, key: str = _ZONE, **more: Any) -> Object:
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **more}


def _required(*terms: Object, anti: bool = False) -> Object:
    return {"podAntiAffinity" if anti else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}


def _preferred(*terms: tuple[int, Object], anti: bool = False) -> Object:
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {"podAntiAffinity" if anti else "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def _spread(*constraints: Object) -> PodBuilder:
    return make_pod().label("app", "web").label("version", "2").spec(topologySpreadConstraints=[*constraints])


def _constraint(key: str, skew: int = 1, *, hard: bool = False, selector: Object | None = _WEB, **more: Any) -> Object:
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    found = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, **more}
    return found if selector is None else {**found, "labelSelector": selector}


def _three_zones(cluster: Cluster) -> None:
    """Zones x (a, b), y (c), z (d, tainted), none (e); web runs on a, a and c, db on b and, of another team, on c."""
    service = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service})
    replica_set = {
        "selector": {"matchLabels": {"tier": "front"}},
        "template": make_pod().label("tier", "front").template(),
    }
    cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "front"}, "spec": replica_set})
    other = cluster.make_namespace(labels={"team": "other"})
    zones = {"a": "x", "b": "x", "c": "y", "d": "z", "e": ""}
    cluster.make_nodes(
        *(
            make_node_object(name, labels={_ZONE: zone} if zone else {}, taints=["use=d:NoSchedule"] * (name == "d"))
            for name, zone in zones.items()
        )
    )
    for index, (name, app) in enumerate((("a", "web"), ("a", "web"), ("c", "web"), ("b", "db"))):
        pod = make_pod(f"{app}-{index}").node_name(name).label("app", app).label("version", str(index % 2))
        cluster.create(pod.label("tier", "front" if index else "back"))
    cluster.create(make_pod("theirs").namespace(other).node_name("c").label("app", "db"))


def _jealous(cluster: Cluster) -> None:
    """The same, and pods that keep away, want near or prefer others."""
    _three_zones(cluster)
    jealous = make_pod("jealous").node_name("b").affinity(_required(_term(_WEB, _HOST), anti=True))
    cluster.create(jealous.label("app", "jealous"))
    cluster.create(make_pod("clinging").node_name("c").affinity(_required(_term(_WEB))).label("app", "clinging"))
    fond = _preferred((40, _term(_WEB, _HOST)), (3, _term({}, namespaceSelector={"matchLabels": {"team": "no"}})))
    cluster.create(make_pod("fond").node_name("e").affinity(fond))
    cluster.create(make_pod("cool").node_name("a").affinity(_preferred((7, _term(_WEB, _HOST)), anti=True)))


_BOUND = [
    pytest.param(_three_zones, make_pod().affinity(_preferred((100, _term(_WEB, _HOST)))), id="near web"),
    pytest.param(_three_zones, make_pod().affinity(_preferred((100, _term(_WEB, _HOST)), anti=True)), id="off web"),
    pytest.param(
        _three_zones,
        make_pod().affinity(_preferred((60, _term(_WEB)), (45, _term(_DB, _HOST, namespaceSelector={})))),
        id="in thirds, over all namespaces",
    ),
    pytest.param(
        _three_zones,
        make_pod().affinity(_preferred((9, _term(_DB, namespaceSelector={"matchLabels": {"team": "other"}})))),
        id="namespaces by labels",
    ),
    pytest.param(_three_zones, make_pod().affinity(_preferred((9, _term(None)))), id="no selector is no pod"),
    pytest.param(
        _three_zones,
        make_pod().label("version", "1").affinity(_preferred((9, _term(_WEB, _HOST, matchLabelKeys=["version"])))),
        id="label keys",
    ),
    pytest.param(
        _three_zones,
        make_pod().label("version", "1").affinity(_preferred((9, _term({}, _HOST, mismatchLabelKeys=["version"])))),
        id="unwanted label keys",
    ),
    pytest.param(_three_zones, make_pod().affinity(_required(_term(_WEB))), id="must be near web"),
    pytest.param(
        _three_zones, make_pod().affinity(_required(_term(_WEB), _term(_WEB, _HOST), anti=True)), id="must be off web"
    ),
    pytest.param(
        _three_zones,
        make_pod().label("app", "new").affinity(_required(_term({"matchLabels": {"app": "new"}}))),
        id="the first of its kind",
    ),
    pytest.param(_jealous, make_pod().label("app", "web"), id="others' terms"),
    pytest.param(_jealous, make_pod().label("app", "db"), id="others' terms that do not concern it"),
    pytest.param(
        _jealous, make_pod().label("app", "web").affinity(_preferred((5, _term(_DB)))), id="others' terms and its own"
    ),
    pytest.param(_three_zones, _spread(_constraint(_ZONE)), id="spread over zones"),
    pytest.param(_three_zones, _spread(_constraint(_HOST, 2), _constraint(_ZONE, 3)), id="over hosts and zones"),
    pytest.param(_three_zones, _spread(_constraint(_HOST, matchLabelKeys=["version"])), id="spread of its version"),
    pytest.param(_three_zones, _spread(_constraint(_ZONE, selector={})), id="spread of everything counts nothing"),
    pytest.param(_three_zones, _spread(_constraint(_ZONE, selector=None)), id="spread of nothing"),
    pytest.param(
        _three_zones,
        _spread(_constraint(_ZONE)).require_node(match_expressions((_HOST, "In", ["b", "c", "e"]))),
        id="nodes ruled out do not count",
    ),
    pytest.param(
        _three_zones,
        _spread(_constraint(_ZONE, nodeAffinityPolicy="Ignore")).require_node(
            match_expressions((_HOST, "In", ["b", "c", "e"]))
        ),
        id="unless they are to count",
    ),
    pytest.param(_three_zones, _spread(_constraint(_ZONE, 2, hard=True)), id="skew of two"),
    pytest.param(_three_zones, make_pod().label("app", "web"), id="spread by its Service"),
    pytest.param(_three_zones, make_pod().label("tier", "front").owner("ReplicaSet", "front"), id="by its ReplicaSet"),
    pytest.param(
        _three_zones,
        make_pod().label("app", "web").label("tier", "front").owner("ReplicaSet", "front"),
        id="by its Service and its ReplicaSet",
    ),
    pytest.param(
        _three_zones, make_pod().label("app", "web").owner("Job", "x", api_version="batch/v1"), id="a Job's, by Service"
    ),
]


@pytest.mark.parametrize(("prepare", "pod"), _BOUND)
def test_pod_is_bound_to_the_predicted_node_with_the_predicted_scores(
    worlds: Worlds, prepare: Callable[[Cluster], None], pod: PodBuilder
) -> None:
    cluster, pod = worlds.of(prepare), pod.generate_name("pod-")
    predicted = _predict(cluster, pod)
    assert (predicted.verdict, predicted.unmodelled) == ("Feasible", ())
    made = cluster.create(pod).object
    bound = cluster.wait_bound(made)
    expected = {
        node: {plugin: score for plugin, score in scores.items() if plugin != "total"}
        for node, scores in predicted.scores.items()
    }
    assert cluster.scores(made) == (expected if len(expected) > 1 else {})
    assert predicted.node is not None
    # Of nodes with equal totals kube-scheduler takes any.
    assert predicted.scores[bound]["total"] == predicted.scores[predicted.node]["total"]


_UNSCHEDULABLE = [
    pytest.param(_three_zones, make_pod().affinity(_required(_term(_DB, "rack"))), "Infeasible", id="no such topology"),
    pytest.param(
        _three_zones,
        make_pod().affinity(_required(_term({"matchLabels": {"app": "none"}}))),
        "Waiting",
        id="whom it needs is not there yet",
    ),
    pytest.param(
        _three_zones,
        make_pod().affinity(_required(_term(_WEB, _HOST), _term(_DB, _HOST))),
        "Waiting",
        id="one pod must match all terms",
    ),
    pytest.param(
        _three_zones,
        make_pod().node_selector(_ZONE, "x").affinity(_required(_term({}, _HOST), anti=True)),
        "Waiting",
        id="nowhere alone",
    ),
    pytest.param(
        _jealous,
        make_pod().label("app", "web").node_selector(_ZONE, "x").affinity(_required(_term(_WEB, _HOST), anti=True)),
        "Waiting",
        id="kept away by both sides",
    ),
    pytest.param(
        _jealous, make_pod().label("app", "web").node_selector(_HOST, "b"), "Waiting", id="kept away by a running pod"
    ),
    pytest.param(_three_zones, _spread(_constraint(_HOST, hard=True)).node_selector(_HOST, "d"), "Infeasible", id="d"),
    pytest.param(
        _three_zones,
        _spread(_constraint(_ZONE, hard=True, nodeAffinityPolicy="Ignore")).node_selector(_ZONE, "x"),
        "Waiting",
        id="too skewed, and a node without the label",
    ),
    pytest.param(
        _three_zones,
        _spread(_constraint(_ZONE, hard=True, minDomains=4)).node_selector(_ZONE, "y"),
        "Waiting",
        id="too few domains",
    ),
    pytest.param(
        _three_zones,
        _spread(_constraint(_HOST, hard=True), _constraint("rack", hard=True)),
        "Infeasible",
        id="the first constraint is named",
    ),
    pytest.param(
        _three_zones,
        _spread(_constraint(_HOST, hard=True, nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore")).require_node(
            match_expressions((_HOST, "In", ["a", "c"]))
        ),
        "Waiting",
        id="tainted nodes do not count",
    ),
]


@pytest.mark.parametrize(("prepare", "pod", "verdict"), _UNSCHEDULABLE)
def test_pod_without_a_predicted_node_is_unschedulable_with_the_same_message(
    worlds: Worlds, prepare: Callable[[Cluster], None], pod: PodBuilder, verdict: str
) -> None:
    cluster, pod = worlds.of(prepare), pod.generate_name("pod-")
    predicted = _predict(cluster, pod)
    assert predicted.verdict == verdict
    message = cluster.wait_unschedulable(cluster.create(pod).object)
    assert first_sentence(message) == predicted.message
