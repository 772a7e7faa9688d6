"""What kube-scheduler says and scores in the older releases, on clusters where the releases differ."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import make_device_class
from tests.support.objects.storage import make_csi_node, make_pv, make_pvc
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.release import Release
from webhook.placement.scheduler import Placement, Scheduler

_MIB = 1024 * 1024


_NOT_KNOWN = "the rules of release 1.34 are not known, only those of 1.35 to 1.37"


def placed(release: int, pod: PodBuilder, *objects: dict[str, Any] | PodBuilder) -> Placement:
    return Scheduler().place(pod.obj(), snapshot_of(release, *objects))


def snapshot_of(release: int, *objects: dict[str, Any] | PodBuilder) -> Snapshot:
    contents = [each.obj() if isinstance(each, PodBuilder) else each for each in objects]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in contents)
    return replace(snapshot, release=Release(release))


def scores_of(plugin: str, placement: Placement) -> dict[str, float]:
    return {node: scores[plugin] for node, scores in placement.scores.items()}


_NOT_SELECTED, _SELECTED = {"a": 0, "b": 0}, {"a": 100, "b": 0}


@pytest.mark.parametrize(("release", "expected"), [(35, _SELECTED), (36, _SELECTED), (37, _NOT_SELECTED)])
def test_a_selector_that_requires_no_label_selects_every_namespace_before_1_37(
    release: int, expected: dict[str, int]
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "blue"}}}
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": selector,
    }
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    nodes = [make_node_object(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    web = make_pod("web").label("app", "web").node_name("a")
    # It makes the plugin score, whatever the term selects.
    neutral = {**term, "namespaceSelector": {}, "labelSelector": {"matchLabels": {"app": "on-both"}}}
    preferred["preferredDuringSchedulingIgnoredDuringExecution"].append({"weight": 1, "podAffinityTerm": neutral})
    others = [make_pod(f"other-{name}").label("app", "on-both").node_name(name) for name in "ab"]

    placement = placed(release, make_pod().affinity({"podAffinity": preferred}), *nodes, namespace, web, *others)

    assert scores_of("InterPodAffinity", placement) == {name: 2 * score for name, score in expected.items()}


@pytest.mark.parametrize(("release", "exemption"), [(34, _NOT_KNOWN), (35, "")])
def test_a_pod_is_not_denied_by_the_rules_of_a_later_release(release: int, exemption: str) -> None:
    placement = placed(release, make_pod().requests(cpu="65"), make_node_object("a"))

    assert (placement.verdict, placement.deny_exemption) == ("Infeasible", exemption)


@pytest.mark.parametrize(("release", "verdict"), [(35, "Infeasible"), (36, "Unknown")])
def test_a_device_class_may_back_an_extended_resource_since_1_36(release: int, verdict: str) -> None:
    pod = make_pod().container("c", **{"deviceclass.resource.kubernetes.io/gpu": "1"})

    placement = placed(release, pod, make_node_object("a"), make_device_class("gpu", any_driver=True))

    assert placement.verdict == verdict
    if release == 35:
        lacking = "1 Insufficient deviceclass.resource.kubernetes.io/gpu"
        assert placement.message == f"0/1 nodes are available: {lacking}."


@pytest.mark.parametrize(("release", "expected"), [(35, {"even": 100, "used": 75}), (36, {"even": 75, "used": 87})])
def test_the_balance_is_compared_with_that_before_the_pod_since_1_36(release: int, expected: dict[str, int]) -> None:
    """The pod leaves an empty node even; on the other one it halves the difference of 100 % to 0 %."""
    capacity = {"cpu": "4", "memory": "4Gi"}
    load = make_pod("load").node_name("used").requests(cpu="4")
    pod = make_pod().requests(cpu="0", memory="2Gi")
    even = make_pod().requests(cpu="2", memory="2Gi")
    nodes = [make_node_object("even", capacity=capacity), make_node_object("used", capacity=capacity)]

    on_even = scores_of("NodeResourcesBalancedAllocation", placed(release, even, *nodes, load.requests(cpu="1")))
    on_used = scores_of("NodeResourcesBalancedAllocation", placed(release, pod, *nodes, load))

    assert {"even": on_even["even"], "used": on_used["used"]} == expected


@pytest.mark.parametrize(("release", "expected"), [(35, {"a": 0, "b": 0}), (36, {"a": 48, "b": 0})])
def test_images_of_image_volumes_score_since_1_36(release: int, expected: dict[str, int]) -> None:
    """The images of image volumes are no part of the score in older releases."""
    with_image = make_node_object("a")
    with_image["status"]["images"] = [{"names": ["big:latest"], "sizeBytes": 1000 * _MIB}]
    pod = make_pod().spec(
        containers=[{"name": "c", "image": "none"}], volumes=[{"name": "v", "image": {"reference": "big"}}]
    )

    assert scores_of("ImageLocality", placed(release, pod, with_image, make_node_object("b"))) == expected


_EBS = "kubernetes.io/aws-ebs"


@pytest.mark.parametrize(
    ("release", "migrated", "feasible"),
    [(35, "", 1), (35, _EBS, 0), (36, "", 0), (36, _EBS, 0)],
)
def test_an_in_tree_volume_counts_for_its_driver_on_every_node_since_1_36(
    release: int, migrated: str, feasible: int
) -> None:
    """Before, it counts on nodes whose CSINode names the plugin as migrated."""
    csi_node = make_csi_node("a", ebs=1)
    csi_node["spec"]["drivers"][0]["name"] = "ebs.csi.aws.com"
    csi_node["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    names = ("running", "new")
    disks = [make_pv(each, csi=None, awsElasticBlockStore={"volumeID": f"aws://zone/vol-{each}"}) for each in names]
    claims = [make_pvc(each, volume=each) for each in names]
    running, new = (
        make_pod(each).spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": each}}]) for each in names
    )

    found = placed(release, new, make_node_object("a"), csi_node, *disks, *claims, running.node_name("a"))
    assert found.feasible == feasible


@pytest.mark.parametrize(("release", "unmodelled"), [(35, ()), (36, ("NodeDeclaredFeatures",))])
def test_features_of_nodes_matter_since_1_36(release: int, unmodelled: tuple[str, ...]) -> None:
    pod = make_pod().spec(hostNetwork=True, hostUsers=False)

    assert placed(release, pod, make_node_object("a")).unmodelled == unmodelled
