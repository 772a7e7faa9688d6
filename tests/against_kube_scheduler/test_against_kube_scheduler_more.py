"""Predictions match the real kube-scheduler for images, gates, claims, device classes and configurations."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.objects.devices import make_device_class, make_resource_claim
from tests.support.objects.storage import (
    make_attachment,
    make_capacity,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from tests.support.on_cluster.scheduler_configuration import configuration as _configuration
from tests.support.on_cluster.scheduler_configuration import started as _started
from tests.support.on_cluster.worlds import Worlds
from tests.support.programs.messages import first_sentence
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_KINDS = (
    *(("v1", kind) for kind in ("Node", "Namespace", "Pod", "PersistentVolumeClaim", "PersistentVolume")),
    *(("storage.k8s.io/v1", kind) for kind in ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity")),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    *(("resource.k8s.io/v1", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")),
)


def _predict(cluster: Cluster, pod: PodBuilder, profile: Profile = DEFAULT) -> Placement:
    """The placement of `pod`, as it is before the API server has stored it, on the cluster as it is."""
    documents = [
        Document("cluster", each)
        for api_version, kind in _KINDS
        for each in cluster.client.list(kind, api_version=api_version)
    ]
    return Scheduler(profile).place(pod.namespace(cluster.namespace).obj(), snapshot_from_documents(documents))


def _predicted_scores(placement: Placement) -> dict[str, Mapping[str, float]]:
    """The scores as kube-scheduler logs them: it has no total, and does not score a single node."""
    scores: dict[str, Mapping[str, float]] = {
        node: {plugin: score for plugin, score in each.items() if plugin != "total"}
        for node, each in placement.scores.items()
    }
    return scores if len(scores) > 1 else {}


def _assert_bound_as_predicted(cluster: Cluster, pod: PodBuilder, profile: Profile = DEFAULT) -> None:
    predicted = _predict(cluster, pod, profile)
    assert (predicted.verdict, predicted.unmodelled) == ("Feasible", ())
    made = cluster.create(pod).object
    bound = cluster.wait_bound(made)
    assert cluster.scores(made) == _predicted_scores(predicted)
    assert predicted.node is not None
    assert predicted.scores[bound]["total"] == predicted.scores[predicted.node]["total"]


def _assert_unschedulable_as_predicted(
    cluster: Cluster, pod: PodBuilder, verdict: str, profile: Profile = DEFAULT
) -> None:
    predicted = _predict(cluster, pod, profile)
    assert predicted.verdict == verdict
    made = cluster.create(pod).object

    def message() -> str:
        nonlocal made
        current = cluster.client.get("Pod", made["metadata"]["name"], cluster.namespace)
        if node := current["spec"].get("nodeName"):
            cluster.delete_pod(made)
            made = cluster.create(pod).object
            return f"bound to {node}"
        conditions = current["status"].get("conditions")
        return first_sentence(conditions[0]["message"]) if conditions else ""

    # Claims and volumes reach kube-scheduler by watches of their own, perhaps after the pod, which it can bind then.
    wait_for(lambda: message() == predicted.message or None, lambda: f"{predicted.message}: {message()}")


def _with_images(node: Object, **sizes_mib: int) -> Object:
    images = [{"names": [f"{name}:latest"], "sizeBytes": size * 1024 * 1024} for name, size in sizes_mib.items()]
    return node | {"status": node["status"] | {"images": images}}


def test_image_locality(cluster: Cluster) -> None:
    cluster.make_nodes(
        _with_images(make_node_object("a"), big=3000, small=20),
        _with_images(make_node_object("b"), big=3000, middle=700),
        make_node_object("c"),
    )
    containers = [{"name": "x", "image": "big"}, {"name": "y", "image": "middle:latest"}]
    init = [{"name": "z", "image": "small"}]
    _assert_bound_as_predicted(cluster, make_pod().spec(containers=containers, initContainers=init))


def test_gated_pod(cluster: Cluster) -> None:
    cluster.make_node("a")
    _assert_unschedulable_as_predicted(cluster, make_pod().spec(schedulingGates=[{"name": "example.com/g"}]), "Waiting")


def test_no_comparing_tolerations_in_this_release(cluster: Cluster) -> None:
    cluster.make_node("a", taints=["level=5:NoSchedule"])
    tolerant = make_pod().toleration("level", operator="Gt", value="3", effect="NoSchedule")
    assert _predict(cluster, tolerant).verdict == "Infeasible"
    with pytest.raises(ApiError, match="tolerations"):
        cluster.create(tolerant)


def _zones(cluster: Cluster) -> None:
    cluster.make_nodes(*(make_node_object(name, labels={_ZONE: f"z{name}"}) for name in ("a", "b", "c")))
    csi_nodes = (make_csi_node("a", disk=1), make_csi_node("b", disk=9), make_csi_node("c"))
    classes = (
        make_storage_class("late"),
        make_storage_class("early", waits=False),
        make_storage_class("elsewhere", topologies=[{_ZONE: ["zx"]}]),
        make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
    )
    volumes = (
        make_pv("anywhere"),
        make_pv("again"),
        make_pv("in-b", on={_ZONE: ["zb"]}),
        make_pv("in-x", on={_ZONE: ["zx"]}),
        make_pv("zone-x", labels={_ZONE: "zx"}),
    )
    claims = (
        *(make_pvc(f"on-{volume['metadata']['name']}", volume=volume["metadata"]["name"]) for volume in volumes),
        make_pvc("gone", volume="gone"),
        make_pvc("late", "late"),
        make_pvc("early", "early"),
        make_pvc("elsewhere", "elsewhere"),
        make_pvc("local", "local"),
        make_pvc("alone", volume="again", accessModes=["ReadWriteOncePod"]),
    )
    # With one object of each, CSIDrivers and VolumeAttachments are known.
    known = (make_csi_driver(), make_attachment("elsewhere", "anywhere"))
    for made in (*csi_nodes, *classes, *volumes, *known):
        cluster.client.create(made)
    for claim in claims:
        cluster.client.create(claim | {"metadata": claim["metadata"] | {"namespace": cluster.namespace}})
    cluster.create(make_pod("first").node_name("a").spec(volumes=uses("on-anywhere", "alone")))


@pytest.mark.parametrize("claims", [["on-in-b"], ["on-in-b", "on-again"]], ids=str)
def test_pod_is_bound_where_its_volume_is(worlds: Worlds, claims: list[str]) -> None:
    _assert_bound_as_predicted(worlds.of(_zones), make_pod().generate_name("pod-").spec(volumes=uses(*claims)))


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        pytest.param(["missing"], "Waiting", id="missing claim"),
        pytest.param(["gone"], "Waiting", id="missing volume"),
        pytest.param(["early"], "Waiting", id="unbound"),
        pytest.param(["on-in-x"], "Infeasible", id="affinity"),
        pytest.param(["on-zone-x"], "Infeasible", id="zone"),
        pytest.param(["on-in-b", "on-in-x"], "Infeasible", id="two volumes apart"),
        pytest.param(["elsewhere"], "Infeasible", id="made elsewhere"),
        pytest.param(["local"], "Waiting", id="nothing to bind"),
        pytest.param(["alone"], "Waiting", id="in use by another pod"),
        pytest.param(["on-in-x", "elsewhere"], "Infeasible", id="two reasons"),
    ],
)
def test_pod_whose_volumes_are_nowhere(worlds: Worlds, claims: list[str], verdict: str) -> None:
    pod = make_pod().generate_name("pod-").spec(volumes=uses(*claims))
    _assert_unschedulable_as_predicted(worlds.of(_zones), pod, verdict)


def test_node_with_all_volumes_attached_that_it_can(cluster: Cluster) -> None:
    _zones(cluster)
    pod = make_pod().spec(volumes=uses("on-in-b")).node_selector(_ZONE, "za")
    _assert_unschedulable_as_predicted(cluster, pod, "Infeasible")
    pod = make_pod("other").spec(volumes=uses("late")).node_selector(_ZONE, "za")
    _assert_unschedulable_as_predicted(cluster, pod, "Waiting")


def test_node_with_a_volume_attached_that_no_pod_uses(cluster: Cluster) -> None:
    _zones(cluster)
    cluster.client.create(make_attachment("b", "again"))
    for number in range(8):
        cluster.client.create(make_pv(f"more-{number}"))
        cluster.client.create(make_attachment("b", f"more-{number}"))
    pod = make_pod().spec(volumes=uses("late")).node_selector(_ZONE, "zb")
    _assert_unschedulable_as_predicted(cluster, pod, "Waiting")


def test_in_tree_volumes_count_for_their_driver(cluster: Cluster) -> None:
    cluster.make_node("a")
    limit = {"name": "ebs.csi.aws.com", "nodeID": "a", "topologyKeys": None, "allocatable": {"count": 1}}
    cluster.client.create(make_csi_node("a") | {"spec": {"drivers": [limit]}})
    cluster.client.create(make_attachment("elsewhere", "gone"))
    for name in ("old", "other"):
        volume = make_pv(name)
        volume["spec"] |= {"awsElasticBlockStore": {"volumeID": f"aws://z/vol-{name}"}, "csi": None}
        cluster.client.create(volume)
        claim = make_pvc(name, volume=name)
        cluster.client.create(claim | {"metadata": claim["metadata"] | {"namespace": cluster.namespace}})
    cluster.create(make_pod("first").node_name("a").spec(volumes=uses("old")))
    _assert_unschedulable_as_predicted(cluster, make_pod().spec(volumes=uses("other")), "Waiting")


@pytest.mark.parametrize(("zone", "node"), [("z1", "b"), ("z2", None)])
def test_bound_in_tree_volume_is_reached_as_its_driver_has_it(cluster: Cluster, zone: str, node: str | None) -> None:
    own = "topology.ebs.csi.aws.com/zone"
    cluster.make_nodes(
        make_node_object("a", labels={_ZONE: "z1"}),
        make_node_object("b", labels={_ZONE: "z1", own: "z1"}),
        make_node_object("c", labels={own: "z1"}),
    )
    for name in ("a", "b", "c"):
        csi_node = make_csi_node(name)
        csi_node["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
        cluster.client.create(csi_node)
    cluster.client.create(make_attachment("elsewhere", "gone"))
    volume = make_pv("old", on={_ZONE: [zone], "kubernetes.io/hostname": ["a", "b"]})
    volume["spec"] |= {"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}, "csi": None}
    cluster.client.create(volume)
    claim = make_pvc("old", volume="old")
    cluster.client.create(claim | {"metadata": claim["metadata"] | {"namespace": cluster.namespace}})
    pod = make_pod().spec(volumes=uses("old"))
    if node is None:
        _assert_unschedulable_as_predicted(cluster, pod, "Infeasible")
    else:
        assert _predict(cluster, pod).node == node
        assert cluster.wait_bound(cluster.create(pod).object) == node


def test_provisioner_without_enough_capacity(cluster: Cluster) -> None:
    cluster.make_nodes(*(make_node_object(name, labels={_ZONE: f"z{name}"}) for name in ("a", "b", "c")))
    namespace = cluster.namespace
    capacities = (
        make_capacity("a", "local-made", "1Gi", on={_ZONE: "za"}),
        make_capacity("b", "local-made", "9Gi", "1Gi", on={_ZONE: "zb"}),
        make_capacity("other", "other", "9Gi", on={}),
    )
    claim = make_pvc("data", "local-made", storage="2Gi")
    for made in (make_csi_driver(tracks_capacity=True), make_storage_class("local-made"), make_csi_node("a")):
        cluster.client.create(made)
    for made in (*capacities, claim, make_pv("other")):
        cluster.client.create(made | {"metadata": made["metadata"] | {"namespace": namespace}})
    pod = make_pod().spec(volumes=uses("data"))
    _assert_unschedulable_as_predicted(cluster, pod, "Waiting")


def test_claim_of_an_unknown_device_class(cluster: Cluster) -> None:
    cluster.make_node("a")
    cluster.client.create(make_device_class("gpu.example.com", any_driver=True))
    request = {"name": "card", "exactly": {"deviceClassName": "gpu.exmaple.com"}}
    claim = make_resource_claim("c", request)
    cluster.client.create(claim | {"metadata": {"name": "c", "namespace": cluster.namespace}})
    pod = make_pod().spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    _assert_unschedulable_as_predicted(cluster, pod, "Infeasible")


def test_resource_of_an_unknown_device_class(cluster: Cluster) -> None:
    cluster.make_node("a")
    cluster.client.create(make_device_class("gpu.example.com", any_driver=True))
    _assert_unschedulable_as_predicted(
        cluster, make_pod().gpu(1, "deviceclass.resource.kubernetes.io/other.example.com"), "Infeasible"
    )


def _ratio(resources: list[Object], *shape: tuple[int, int]) -> tuple[str, Object]:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": resources,
        "requestedToCapacityRatio": {"shape": points},
    }
    return "NodeResourcesFit", {"scoringStrategy": strategy}


_CARDS: list[Object] = [{"name": "nvidia.com/gpu", "weight": 3}, {"name": "cpu"}, {"name": "memory", "weight": 2}]
_BALANCED = {"resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", "nvidia.com/gpu")]}
_PREFERRED = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 30, "preference": match_expressions(("use", "In", ["training"]))}
    ]
}


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(_configuration(_ratio(_CARDS, (0, 0), (100, 10))), id="rising ratio"),
        pytest.param(_configuration(_ratio(_CARDS, (0, 10), (37, 2), (80, 0))), id="falling ratio"),
        pytest.param(_configuration(("NodeResourcesBalancedAllocation", _BALANCED)), id="three resources in balance"),
        pytest.param(_configuration(("NodeAffinity", {"addedAffinity": _PREFERRED})), id="added preference"),
        pytest.param(
            _configuration(
                score={
                    "enabled": [{"name": "TaintToleration", "weight": 11}, {"name": "ImageLocality"}],
                    "disabled": [{"name": "NodeResourcesFit"}],
                },
                multiPoint={"enabled": [{"name": "NodeAffinity", "weight": 7}], "disabled": [{"name": "VolumeZone"}]},
            ),
            id="weights and plugins",
        ),
        pytest.param(
            _configuration(score={"enabled": [{"name": "NodeResourcesFit", "weight": 2}], "disabled": [{"name": "*"}]}),
            id="one score alone",
        ),
    ],
)
def test_configuration_gives_these_scores(cluster: Cluster, configuration: Object) -> None:
    profile = _started(cluster, configuration)
    capacity: dict[str, str | int] = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 8}
    cluster.make_nodes(
        make_node_object("a", capacity=capacity, labels={"use": "training"}, taints=["x=y:PreferNoSchedule"]),
        make_node_object("b", capacity=capacity),
        make_node_object("c", capacity=capacity | {"nvidia.com/gpu": 4, "memory": "7Gi"}),
    )
    cluster.create(make_pod("first").node_name("a").requests(cpu="3", memory="1Gi").gpu(3))
    cluster.create(make_pod("second").node_name("b").requests(cpu="500m", memory="9Gi").gpu(1))
    _assert_bound_as_predicted(cluster, make_pod().requests(cpu="1100m", memory="3Gi").gpu(1), profile)


@pytest.mark.parametrize(
    ("configuration", "pod", "verdict"),
    [
        pytest.param(
            _configuration(
                (
                    "NodeAffinity",
                    {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [match_expressions(("use", "In", ["training"]))]
                            }
                        }
                    },
                )
            ),
            make_pod().node_selector("other", "x"),
            "Infeasible",
            id="added affinity",
        ),
        pytest.param(
            _configuration(("NodeResourcesFit", {"ignoredResourceGroups": ["example.com"]})),
            make_pod().gpu(1, "example.com/a").gpu(1, "other.com/b"),
            "Infeasible",
            id="ignored resources",
        ),
        pytest.param(
            _configuration(filter={"disabled": [{"name": "NodeResourcesFit"}, {"name": "NodeUnschedulable"}]}),
            make_pod().requests(cpu="10k").node_selector("other", "x"),
            "Infeasible",
            id="filters off",
        ),
    ],
)
def test_configuration_gives_this_message(
    cluster: Cluster, configuration: Object, pod: PodBuilder, verdict: str
) -> None:
    profile = _started(cluster, configuration)
    cluster.make_nodes(
        make_node_object("a", labels={"use": "training"}),
        make_node_object("b"),
        make_node_object("cordoned", unschedulable=True),
    )
    _assert_unschedulable_as_predicted(cluster, pod, verdict, profile)
