"""Compare predictions with the real kube-scheduler."""

from collections.abc import Callable, Mapping
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
from webhook.placement.profiles.profile import PROFILES, Profile
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_SMALL = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "4"}
_TRAINING = match_expressions(("use", "In", ["training"]))


@lru_cache(maxsize=1)
def _snapshot(cluster: Cluster) -> Snapshot:
    """The cluster, as each of its tests finds it."""
    documents = [
        Document("cluster", {"apiVersion": "v1", "kind": kind} | each)
        for kind in ("Node", "Namespace", "Pod")
        for each in cluster.client.list(kind)
    ]
    return snapshot_from_documents(documents)


def _predict(cluster: Cluster, pod: PodBuilder) -> Placement:
    """The placement of `pod`, as the API server would store it."""
    stored = cluster.create(pod, dry_run=True).object
    return Scheduler(_profile(stored)).place(stored, _snapshot(cluster))


def _profile(pod: Object) -> Profile:
    return PROFILES["binpack" if pod["spec"]["schedulerName"] == "binpack" else "default"]


def _predicted_scores(placement: Placement) -> dict[str, Mapping[str, float]]:
    """The scores as kube-scheduler logs them: it has no total, and does not score a single node."""
    if len(placement.scores) == 1:
        return {}
    return {
        node: {plugin: score for plugin, score in scores.items() if plugin != "total"}
        for node, scores in placement.scores.items()
    }


def _two_small_ones(cluster: Cluster) -> None:
    cluster.make_nodes(make_node_object("a", capacity=_SMALL), make_node_object("b", capacity=_SMALL))


def _used_and_empty(cluster: Cluster) -> None:
    _two_small_ones(cluster)
    cluster.create(make_pod("first").node_name("a").requests(cpu="1", memory="1500M").gpu(4))
    cluster.create(make_pod("second").node_name("a").container("other").init_container("i", cpu="2", memory="100Mi"))


def _pools(cluster: Cluster) -> None:
    cluster.make_nodes(
        make_node_object("control", taints=["control-plane=:NoSchedule"]),
        make_node_object("cordoned", labels={"use": "training"}, unschedulable=True),
        make_node_object("hybrid", labels={"use": "hybrid", "cards": "4"}, taints=["use=hybrid:PreferNoSchedule"]),
        make_node_object("inference", labels={"use": "inference"}, taints=["use=inference:NoExecute"]),
        make_node_object(
            "training", labels={"use": "training", "cards": "8"}, taints=["gpu=H20:NoSchedule"], capacity=_SMALL
        ),
    )


def _repelling(cluster: Cluster) -> None:
    taints = [f"k{index}=x:PreferNoSchedule" for index in range(3)]
    cluster.make_nodes(*(make_node_object(f"n{count}", taints=taints[:count]) for count in range(4)))


_H20 = make_pod().toleration("gpu", operator="Equal", value="H20", effect="NoSchedule")
_EVERYWHERE = make_pod().toleration(operator="Exists")


@pytest.mark.parametrize(
    ("prepare", "pod"),
    [
        pytest.param(_pools, _H20, id="two nodes, one repels"),
        pytest.param(_pools, _H20.require_node(_TRAINING), id="a single node is not scored"),
        pytest.param(
            _pools,
            _EVERYWHERE.prefer_node(70, _TRAINING).prefer_node(30, match_expressions(("cards", "Exists", []))),
            id="preferred terms over five nodes",
        ),
        pytest.param(_pools, _EVERYWHERE.require_node(match_expressions(("cards", "Lt", ["8"]))), id="Lt"),
        pytest.param(_repelling, make_pod().requests(cpu="1", memory="3Gi"), id="taints that repel, in thirds"),
        pytest.param(_repelling, make_pod().toleration("k1", operator="Exists"), id="one of them tolerated"),
        pytest.param(_used_and_empty, make_pod(), id="a pod without requests is not balanced"),
        pytest.param(_used_and_empty, make_pod().requests(cpu="700m", memory="1G"), id="least allocated"),
        pytest.param(
            _used_and_empty,
            make_pod().requests(cpu="300m").sidecar("s", cpu="200m", memory="1Gi").init_container("i", cpu="1500m"),
            id="sidecar and init container",
        ),
        pytest.param(
            _used_and_empty, make_pod().container("other").pod_resources(cpu="1500m", memory="3Gi"), id="pod level"
        ),
        pytest.param(
            _used_and_empty, make_pod().scheduler("binpack").requests(cpu="1", memory="1Gi").gpu(4), id="binpack, cards"
        ),
        pytest.param(_used_and_empty, make_pod().scheduler("binpack").requests(cpu="1500m"), id="binpack, no cards"),
    ],
)
def test_pod_is_bound_to_the_predicted_node_with_the_predicted_scores(
    worlds: Worlds, prepare: Callable[[Cluster], None], pod: PodBuilder
) -> None:
    cluster, pod = worlds.of(prepare), pod.generate_name("pod-")
    predicted = _predict(cluster, pod)
    assert predicted.verdict == "Feasible"
    made = cluster.create(pod).object
    bound = cluster.wait_bound(made)
    assert cluster.scores(made) == _predicted_scores(predicted)
    assert predicted.node is not None
    # Of nodes with equal totals kube-scheduler takes any.
    assert predicted.scores[bound]["total"] == predicted.scores[predicted.node]["total"]


def _by_name(*names: str) -> Object:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]}


def _crowded(cluster: Cluster) -> None:
    _two_small_ones(cluster)
    cluster.make_node("tiny", capacity={"cpu": "100m", "memory": "1Gi", "pods": "1"})
    for index in range(3):
        cluster.create(make_pod(f"on-a-{index}").node_name("a").requests(cpu="100m").host_port(8080 + index))
    cluster.create(make_pod("on-b").node_name("b").host_port(8080, host_ip="10.0.0.1").gpu(5))
    cluster.create(make_pod("on-tiny").node_name("tiny"))


@pytest.mark.parametrize(
    ("prepare", "pod", "verdict"),
    [
        pytest.param(_pools, make_pod().node_selector("use", "none"), "Infeasible", id="a reason for each node"),
        pytest.param(_pools, _H20.gpu(9), "Infeasible", id="cards nowhere"),
        pytest.param(_pools, _EVERYWHERE.requests(cpu="65", memory="1Ti"), "Infeasible", id="all short of two things"),
        pytest.param(_pools, _H20.require_node(_by_name("training")).gpu(9), "Infeasible", id="by name"),
        pytest.param(_pools, make_pod().require_node(_by_name("elsewhere")), "Infeasible", id="by a name not there"),
        pytest.param(_pools, make_pod().require_node(_by_name("hybrid", "training")), "Infeasible", id="by two names"),
        pytest.param(_crowded, make_pod().host_port(8080).gpu(1), "Waiting", id="ports and cards"),
        pytest.param(_crowded, make_pod().requests(cpu="3900m", memory="8Gi").gpu(4), "Waiting", id="too much runs"),
        pytest.param(
            _crowded, make_pod().requests(cpu="5").gpu(8, "amd.com/gpu"), "Infeasible", id="a device that no node has"
        ),
        pytest.param(_crowded, make_pod().requests(memory="8193Mi"), "Infeasible", id="a little more than there is"),
    ],
)
def test_pod_without_a_predicted_node_is_unschedulable_with_the_same_message(
    worlds: Worlds, prepare: Callable[[Cluster], None], pod: PodBuilder, verdict: str
) -> None:
    cluster, pod = worlds.of(prepare), pod.generate_name("pod-")
    predicted = _predict(cluster, pod)
    assert predicted.verdict == verdict
    message = cluster.wait_unschedulable(cluster.create(pod).object)
    assert first_sentence(message) == predicted.message
