"""Compare predictions for extended resources of DeviceClasses with the real kube-scheduler."""

from typing import Any

import pytest

from tests.against_kube_scheduler.devices_as_predicted import (
    API,
    MODEL,
    assert_pod_as_predicted,
    make,
    predict,
)
from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    first_of,
    make_cards,
    make_device,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.on_cluster.scheduler_configuration import configuration, started

Object = dict[str, Any]

_RACK = "topology.kubernetes.io/rack"
_EXTENDED = "example.com/gpu"
_IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def _extended_world(cluster: Cluster) -> None:
    """Node a has two free devices, b offers four by a device plugin, c has none, d has three with one taken."""
    make(
        cluster,
        make_device_class(extended_resource=_EXTENDED),
        make_device_class("h100", f'{MODEL} == "H100"', extended_resource="example.com/h100"),
        make_slice("a", *make_cards(2, model="A100")),
        make_slice("d", *make_cards(1, model="A100"), *make_cards(2, 1, model="H100")),
        allocated(make_resource_claim("other", exactly()), "d", "card-0"),
    )
    cluster.make_nodes(
        make_node_object("a"),
        make_node_object("b", capacity={_EXTENDED: 4, "example.com/nic": 1}),
        make_node_object("c"),
        make_node_object("d", capacity={_EXTENDED: 0, "example.com/nic": 0}),
    )


@pytest.mark.parametrize(
    ("pod", "verdict", "nodes"),
    [
        pytest.param(make_pod().gpu(1, _EXTENDED), "Feasible", {"a", "b", "d"}, id="one"),
        pytest.param(make_pod().gpu(3, _EXTENDED), "Feasible", {"b"}, id="more than are free"),
        pytest.param(make_pod().gpu(5, _EXTENDED), "Infeasible", None, id="more than there are"),
        pytest.param(make_pod().gpu(2, _IMPLICIT), "Feasible", {"a", "d"}, id="by the class"),
        pytest.param(make_pod().gpu(3, _IMPLICIT), "Waiting", None, id="one is taken"),
        pytest.param(make_pod().gpu(1, "deviceclass.resource.kubernetes.io/none"), "Infeasible", None, id="no class"),
        pytest.param(make_pod().gpu(1, _EXTENDED).gpu(1, "example.com/nic"), "Feasible", {"b"}, id="and another"),
        pytest.param(make_pod().gpu(1, _EXTENDED).gpu(2, "example.com/nic"), "Infeasible", None, id="and too many"),
        pytest.param(make_pod().gpu(1, _EXTENDED).gpu(1, "example.com/h100"), "Feasible", {"d"}, id="two classes"),
        pytest.param(make_pod().gpu(1, _IMPLICIT).gpu(2, "example.com/h100"), "Waiting", None, id="two of one kind"),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).container("b", **{_EXTENDED: 1}), "Feasible", {"a", "b", "d"}, id="2"
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).container("b", **{_EXTENDED: 2}), "Feasible", {"b"}, id="containers together"
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).init_container("i", **{_EXTENDED: 2}), "Feasible", {"a", "b", "d"}, id="init"
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).init_container("i", **{_EXTENDED: 2}).init_container("j", **{_EXTENDED: 3}),
            "Feasible",
            {"b"},
            id="the largest init container",
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).sidecar("s", **{_EXTENDED: 1}).init_container("i", **{_EXTENDED: 2}),
            "Feasible",
            {"b"},
            id="beside a sidecar",
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).init_container("i", **{_EXTENDED: 2}).sidecar("s", **{_EXTENDED: 1}),
            "Feasible",
            {"a", "b", "d"},
            id="before a sidecar",
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).spec(resourceClaims=claiming("more")), "Feasible", {"a", "d"}, id="and a claim"
        ),
        pytest.param(
            make_pod().gpu(2, _EXTENDED).spec(resourceClaims=claiming("more")), "Waiting", None, id="too many with it"
        ),
        pytest.param(
            make_pod().gpu(1, _EXTENDED).spec(resourceClaims=claiming("either")),
            "Feasible",
            {"a", "d"},
            id="and a list of alternatives",
        ),
    ],
)
def test_extended_resource_of_a_class(cluster: Cluster, pod: PodBuilder, verdict: str, nodes: set[str] | None) -> None:
    _extended_world(cluster)
    best = exactly("", 1, f'{MODEL} == "H100"')
    make(
        cluster,
        make_resource_claim("more", exactly()),
        make_resource_claim("either", first_of("r", best=best, other=exactly("", 1))),
    )
    assert_pod_as_predicted(cluster, pod, verdict=verdict, nodes=nodes)


def test_of_two_classes_of_one_resource_the_newer_counts_or_the_first_by_name(cluster: Cluster) -> None:
    make(
        cluster,
        make_device_class("a", f'{MODEL} == "H100"', extended_resource=_EXTENDED),
        make_device_class("b", extended_resource=_EXTENDED),
        make_slice("a", *make_cards(1, model="A100")),
        make_slice("b", *make_cards(1, model="H100")),
        allocated(make_resource_claim("other", exactly()), "gone", "card-0"),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    created = {each["metadata"]["creationTimestamp"] for each in cluster.client.list("DeviceClass", api_version=API)}
    nodes = {"b"} if len(created) == 1 else {"a", "b"}
    assert_pod_as_predicted(cluster, make_pod().gpu(1, _EXTENDED), verdict="Feasible", nodes=nodes)


def test_claim_of_an_earlier_attempt_is_deleted_first(cluster: Cluster) -> None:
    _extended_world(cluster)
    held = cluster.create(make_pod().gpu(1, _EXTENDED).spec(schedulingGates=[{"name": "example.com/later"}])).object
    claim = make_resource_claim("stale", exactly("container-0-request-0"))
    claim["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": held["metadata"]["name"],
                "uid": held["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    make(cluster, claim)
    pod = make_pod(held["metadata"]["name"]).uid(held["metadata"]["uid"]).gpu(1, _EXTENDED)
    predicted = predict(cluster, pod)
    assert (predicted.verdict, predicted.unmodelled) == ("Waiting", ())
    cluster.release(held)
    assert cluster.first_refusal(held).startswith(predicted.message.removesuffix("."))


_BY_GPU = {"resources": [{"name": _EXTENDED, "weight": 3}, {"name": "cpu", "weight": 1}]}
_WITHOUT_CLAIMS = {"disabled": [{"name": "DynamicResources"}]}


@pytest.mark.parametrize("plugins", [{}, {"multiPoint": _WITHOUT_CLAIMS}], ids=["with claims", "without"])
@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
def test_scores_by_an_extended_resource_of_a_class(cluster: Cluster, strategy: str, plugins: Object) -> None:
    """Devices of older generations and of incomplete pools count, too, and those of everywhere on each node."""
    scoring: Object = {"type": strategy, **_BY_GPU}
    if strategy == "RequestedToCapacityRatio":
        shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        scoring["requestedToCapacityRatio"] = {"shape": shape}
    profile = started(cluster, configuration(("NodeResourcesFit", {"scoringStrategy": scoring}), **plugins))
    in_rack = {"nodeSelectorTerms": [{"matchExpressions": [{"key": _RACK, "operator": "In", "values": ["r1"]}]}]}
    _extended_world(cluster)
    make(
        cluster,
        make_slice("", *make_cards(2), pool="anywhere", allNodes=True),
        make_slice("", *make_cards(3), pool="rack", nodeSelector=in_rack, count=2),
        make_slice("a", *make_cards(1), pool="a", generation=0),
        make_slice(
            "",
            make_device("x", nodeName="d"),
            make_device("y", nodeSelector=in_rack),
            pool="each",
            perDeviceNodeSelection=True,
        ),
        allocated(make_resource_claim("another", exactly()), "anywhere", "card-1"),
    )
    cluster.make_nodes(make_node_object("e", labels={_RACK: "r1"}))
    pod = make_pod().gpu(1, _EXTENDED).requests(cpu="500m")
    assert_pod_as_predicted(cluster, pod, verdict="Feasible", nodes=set("abcde"), profile=profile)


def test_balance_with_an_extended_resource_of_a_class(cluster: Cluster) -> None:
    resources = {"resources": [each | {"weight": 1} for each in _BY_GPU["resources"]]}
    profile = started(cluster, configuration(("NodeResourcesBalancedAllocation", resources)))
    device_class = make_device_class(extended_resource=_EXTENDED)
    del device_class["spec"]["selectors"]
    make(
        cluster,
        device_class,
        make_slice("a", *make_cards(4)),
        make_slice("b", *make_cards(2)),
        allocated(make_resource_claim("other", exactly()), "a", "card-0"),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"), make_node_object("c", capacity={_EXTENDED: 3}))
    pod = make_pod().gpu(1, _EXTENDED).requests(cpu="16")
    assert_pod_as_predicted(cluster, pod, verdict="Feasible", nodes={"a", "b", "c"}, profile=profile)
