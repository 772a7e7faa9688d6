"""Compare predictions on nodes with nominated pods with the real kube-scheduler."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.configuration import scheduler_configuration
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.messages import first_sentence
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]
Prepare = Callable[[Cluster], object]

_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"
_WEB = {"matchLabels": {"app": "web"}}
_DB = {"matchLabels": {"app": "db"}}
_HIGH = "system-cluster-critical"
_SMALL = {"cpu": "2", "pods": "3"}
_PROFILES = parse_profiles(json.dumps(scheduler_configuration()), "configuration")


def _snapshot(cluster: Cluster) -> Snapshot:
    kinds = ("Node", "Namespace", "Pod")
    return snapshot_from_documents(Document("cluster", each) for kind in kinds for each in cluster.client.list(kind))


def _place(cluster: Cluster, stored: Object) -> Placement:
    return Scheduler(_PROFILES[stored["spec"]["schedulerName"]]).place(stored, _snapshot(cluster))


def _agree(cluster: Cluster, made: Object, predicted: Placement) -> None:
    """Assert that kube-scheduler does to the pod `made` what was `predicted`."""
    if predicted.verdict == "Feasible":
        bound = cluster.wait_bound(made)
        assert predicted.node is not None
        assert predicted.scores[bound]["total"] == predicted.scores[predicted.node]["total"]
        scores = {node: {**each} for node, each in predicted.scores.items()}
        for each in scores.values():
            del each["total"]
        assert cluster.scores(made) == (scores if len(scores) > 1 else {})
    else:
        message = cluster.first_refusal(made)
        assert first_sentence(message) == predicted.message


def _two(cluster: Cluster, **kept: str) -> None:
    """Nodes a and b in one zone, c in another; each has 2 cores and room for three pods."""
    for name in "abc":
        labels = {_ZONE: "y" if name == "c" else "x"}
        cluster.make_nodes(make_node_object(name, labels=labels, capacity=_SMALL))


def _keeping(pod: PodBuilder, *nodes: str, running: PodBuilder | None = None, wait: bool = True) -> Prepare:
    """On the three nodes of `_two` a pod like `pod` is nominated to each of `nodes`, and `running` runs."""

    def prepare(cluster: Cluster) -> None:
        _two(cluster)
        if running is not None:
            cluster.create(running)
        for node in nodes:
            named = pod.obj()
            named["metadata"]["name"] = f"kept-{node}"
            cluster.nominate(named, node, wait=wait)

    return prepare


def _required(selector: Object, key: str, *, anti: bool = False) -> Object:
    term = {"topologyKey": key, "labelSelector": selector}
    return {"podAntiAffinity" if anti else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(selector: Object, key: str = _ZONE) -> list[Object]:
    return [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


_LARGE = make_pod().requests(cpu="1500m")
_ON_WEB = make_pod().label("app", "web")
_WEB_RUNS = make_pod("runs").label("app", "web")
_AWAY_FROM_WEB = make_pod("away").label("app", "db").affinity(_required(_WEB, _HOST, anti=True))


@pytest.mark.parametrize(
    ("prepare", "pod", "verdict", "nodes"),
    [
        pytest.param(_keeping(_LARGE, *"abc"), _LARGE, "Waiting", "", id="what equals have asked for is kept"),
        pytest.param(_keeping(_LARGE, *"ab"), _LARGE, "Feasible", "c", id="other nodes are free"),
        pytest.param(
            _keeping(_LARGE, *"abc"), _LARGE.spec(priorityClassName=_HIGH), "Feasible", "abc", id="a higher pod passes"
        ),
        pytest.param(
            _keeping(_LARGE.spec(priorityClassName=_HIGH), *"abc"), _LARGE, "Waiting", "", id="a lower one does not"
        ),
        pytest.param(
            _keeping(make_pod().host_port(80), *"ab"), make_pod().host_port(80), "Feasible", "c", id="host ports"
        ),
        pytest.param(
            _keeping(_LARGE, "a", "b", running=make_pod("runs").node_name("a").requests(cpu="1")),
            make_pod().requests(cpu="1"),
            "Feasible",
            "c",
            id="nodes that are full without them too",
        ),
        pytest.param(
            _keeping(_ON_WEB, *"abc"),
            make_pod().affinity(_required(_WEB, _ZONE)),
            "Waiting",
            "",
            id="a neighbour who is not there yet is none",
        ),
        pytest.param(
            _keeping(_ON_WEB, "a", running=_WEB_RUNS.node_name("b")),
            make_pod().affinity(_required(_WEB, _ZONE)),
            "Feasible",
            "ab",
            id="one who is there",
        ),
        pytest.param(
            _keeping(_ON_WEB, "a"),
            make_pod().affinity(_required(_WEB, _ZONE, anti=True)),
            "Feasible",
            "bc",
            id="what is kept on a node bars that node alone of its domain",
        ),
        pytest.param(
            _keeping(_AWAY_FROM_WEB, *"abc"), _ON_WEB, "Feasible", "abc", id="anti-affinity of nominated pods alone"
        ),
        pytest.param(
            _keeping(_AWAY_FROM_WEB, "a", "b", running=_AWAY_FROM_WEB.node_name("b")),
            _ON_WEB,
            "Feasible",
            "c",
            id="anti-affinity of nominated pods beside that of a running one",
        ),
        pytest.param(
            _keeping(_ON_WEB, "a"),
            _ON_WEB.spec(topologySpreadConstraints=_spread(_WEB)),
            "Feasible",
            "bc",
            id="spread over zones",
        ),
        pytest.param(
            _keeping(_ON_WEB, *"ac"),
            _ON_WEB.spec(topologySpreadConstraints=_spread(_WEB, _HOST)),
            "Feasible",
            "b",
            id="spread over hosts",
        ),
        pytest.param(
            _keeping(_ON_WEB, "a"),
            _ON_WEB.spec(topologySpreadConstraints=_spread({}, _HOST)),
            "Feasible",
            "bc",
            id="an empty selector spreads nominated pods alone",
        ),
        pytest.param(
            _keeping(_LARGE.scheduler("binpack"), *"abc"), _LARGE, "Waiting", "", id="another profile of the scheduler"
        ),
        pytest.param(
            _keeping(_LARGE.scheduler("nobody"), *"abc", wait=False), _LARGE, "Feasible", "abc", id="another scheduler"
        ),
        pytest.param(_keeping(_LARGE, "elsewhere"), _LARGE, "Feasible", "abc", id="a node that is not there"),
    ],
)
def test_nodes_that_are_reserved_for_others_are_predicted(
    cluster: Cluster, prepare: Prepare, pod: PodBuilder, verdict: str, nodes: str
) -> None:
    prepare(cluster)
    predicted = _place(cluster, cluster.create(pod, dry_run=True).object)
    assert (predicted.verdict, set(predicted.scores)) == (verdict, set(nodes))
    _agree(cluster, cluster.create(pod).object, predicted)


def test_as_many_pods_as_a_node_allows_are_kept(cluster: Cluster) -> None:
    cluster.make_node("a", capacity={"pods": "2"})
    for name in ("first", "second"):
        cluster.nominate(make_pod(name), "a")
    predicted = _place(cluster, cluster.create(make_pod(), dry_run=True).object)
    assert predicted.message == "0/1 nodes are available: 1 Too many pods."
    _agree(cluster, cluster.create(make_pod()).object, predicted)


def test_a_nominated_pod_that_is_being_deleted_is_kept_its_node_while_it_is_there(cluster: Cluster) -> None:
    _two(cluster)
    kept = make_pod("dying").label("app", "web").requests(cpu="1500m").obj()
    kept["metadata"]["finalizers"] = ["example.com/stay"]
    nominated = cluster.nominate(kept, "a")
    since = cluster.control_plane.scheduler_log.end()
    cluster.client.delete("Pod", "dying", namespace=cluster.namespace)
    log = cluster.control_plane.scheduler_log
    log.wait_for_events("Update event for unscheduled pod", "pod", [f"{cluster.namespace}/dying"], since=since)
    spread = make_pod("spread").label("app", "web").spec(topologySpreadConstraints=_spread(_WEB, _HOST))
    try:
        for pod in (_LARGE, spread):
            predicted = _place(cluster, cluster.create(pod, dry_run=True).object)
            assert set(predicted.scores) == {"b", "c"}
            made = cluster.create(pod).object
            _agree(cluster, made, predicted)
            cluster.delete_pod(made)
    finally:
        body = {"metadata": {"finalizers": None}}
        cluster.client.patch("Pod", nominated["metadata"]["name"], body, namespace=cluster.namespace)


def test_a_nominated_pod_that_has_ended_keeps_nothing(cluster: Cluster) -> None:
    _keeping(_LARGE, *"abc")(cluster)
    since = cluster.control_plane.scheduler_log.end()
    body = {"status": {"phase": "Failed"}}
    cluster.client.patch("Pod", "kept-b", body, namespace=cluster.namespace, subresource="status")
    log = cluster.control_plane.scheduler_log
    log.wait_for_events("Delete event for unscheduled pod", "pod", [f"{cluster.namespace}/kept-b"], since=since)
    predicted = _place(cluster, cluster.create(_LARGE, dry_run=True).object)
    assert set(predicted.scores) == {"b"}
    _agree(cluster, cluster.create(_LARGE).object, predicted)


def test_a_pod_that_waits_for_its_victims_to_go_is_kept_its_node(cluster: Cluster) -> None:
    cluster.make_node("a", capacity=_SMALL)
    stays = make_pod("victim").node_name("a").requests(cpu="1500m").spec(terminationGracePeriodSeconds=3600)
    cluster.create(stays)
    preemptor = cluster.create(make_pod("preemptor").requests(cpu="1").spec(priorityClassName=_HIGH)).object
    cluster.wait_unschedulable(preemptor)
    small = make_pod("small").requests(cpu="500m")
    predicted = _place(cluster, cluster.create(small, dry_run=True).object)
    assert predicted.verdict == "Waiting"
    _agree(cluster, cluster.create(small).object, predicted)


def _by_name(name: str) -> Object:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


_RUNS_ON_A = make_pod("runs").node_name("a").requests(cpu="1")


@pytest.mark.parametrize(
    ("prepare", "pod", "node", "verdict", "nodes"),
    [
        pytest.param(
            _keeping(_LARGE, running=_RUNS_ON_A), make_pod().requests(cpu="1"), "a", "Feasible", "a", id="the kept node"
        ),
        pytest.param(
            _keeping(_LARGE, running=_RUNS_ON_A), _LARGE, "a", "Feasible", "bc", id="the others, if it is full"
        ),
        pytest.param(_keeping(_LARGE), _LARGE, "elsewhere", "Feasible", "abc", id="the others, if it is gone"),
        pytest.param(_keeping(_LARGE, "a"), _LARGE, "a", "Feasible", "bc", id="another is nominated there too"),
        pytest.param(
            _keeping(_LARGE, "a", running=_RUNS_ON_A),
            _LARGE.requests(cpu="3"),
            "a",
            "Infeasible",
            "",
            id="no node at all",
        ),
        pytest.param(
            _keeping(_LARGE),
            _LARGE.requests(cpu="3").require_node(_by_name("b")),
            "a",
            "Infeasible",
            "",
            id="its own reason stands though it is not asked for",
        ),
    ],
)
def test_a_pods_own_nomination_is_predicted(
    cluster: Cluster, prepare: Prepare, pod: PodBuilder, node: str, verdict: str, nodes: str
) -> None:
    prepare(cluster)
    made = cluster.nominate(pod, node)
    stored = {**made, "spec": {name: value for name, value in made["spec"].items() if name != "schedulingGates"}}
    predicted = _place(cluster, stored)
    assert (predicted.verdict, set(predicted.scores)) == (verdict, set(nodes))
    cluster.release(made)
    _agree(cluster, made, predicted)
