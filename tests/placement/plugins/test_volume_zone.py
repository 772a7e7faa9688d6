"""VolumeZone: a volume with zone labels refuses nodes of other zones, also without VolumeBinding."""

import json
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import make_csi_node, make_pv, make_pvc, make_storage_class, uses
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

Object = dict[str, Any]
_OTHER = (make_pvc("other", volume="other"), make_pv("other"), make_storage_class("other"), make_csi_node("a"))


def _place(plugin: str, pod: PodBuilder, *objects: Object) -> Placement:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", plugin)]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}],
    }
    (profile,) = parse_profiles(json.dumps(configuration), "profile").values()
    documents = [Document("cluster", each) for each in (make_node_object("a"), *objects)]
    return Scheduler(profile).place(pod.obj(), snapshot_from_documents(documents))


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param([make_pvc("data", volume="gone")], 'persistentvolume "gone" not found', id="no volume"),
        pytest.param([make_pvc("data")], "PersistentVolumeClaim had no pv name and storageClass name", id="no class"),
        pytest.param(
            [make_pvc("data", "gone")], 'storageclass.storage.k8s.io "gone" not found', id="a class that is missing"
        ),
        pytest.param(
            [make_pvc("data", "fast"), make_storage_class("fast", waits=False)],
            "PersistentVolume had no name",
            id="to be bound at once",
        ),
        pytest.param([make_pvc("data", "other")], "", id="to be bound with the pod"),
        pytest.param([make_pvc("data", volume="other", bound=False)], "", id="half bound"),
    ],
)
def test_volume_zone(objects: list[Object], reason: str) -> None:
    placement = _place("VolumeZone", make_pod().spec(volumes=uses("data")), *_OTHER, *objects)
    if reason:
        assert (placement.verdict, placement.message) == ("Waiting", f"0/1 nodes are available: {reason}.")
    else:
        assert placement.verdict == "Feasible"
    assert placement.unmodelled == ()


@pytest.mark.parametrize("plugin", ["VolumeZone", "NodeVolumeLimits", "VolumeBinding"])
@pytest.mark.parametrize("is_bound", [True, False])
def test_volume_that_is_not_known_is_named(plugin: str, is_bound: bool) -> None:
    pod = make_pod().spec(volumes=uses("data"))
    placement = _place(plugin, pod, make_pvc("data", "late", volume="v", bound=is_bound))
    assert plugin in placement.unmodelled
    assert placement.verdict != "Feasible"


_ZONE, _OLD = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
_REGION, _OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("of_volume", "of_node", "reaches"),
    [
        pytest.param({_ZONE: "a"}, {_ZONE: "a"}, True, id="the zone"),
        pytest.param({_ZONE: "a"}, {_ZONE: "b"}, False, id="another zone"),
        pytest.param({_ZONE: "a__b"}, {_ZONE: "b"}, True, id="one of two zones"),
        pytest.param({_ZONE: "a__"}, {_ZONE: "b"}, True, id="zones with an empty part do not count"),
        pytest.param({_OLD: "a"}, {_ZONE: "a"}, True, id="the old label of a volume, the new one of the node"),
        pytest.param({_OLD: "a"}, {_ZONE: "b"}, False, id="which differ"),
        pytest.param({_OLD: "a"}, {_OLD: "a", _ZONE: "b"}, True, id="the same label comes first"),
        pytest.param({_OLD: "a"}, {_OLD: "b", _ZONE: "a"}, False, id="also if only the new one matches"),
        pytest.param({_ZONE: "a"}, {_OLD: "a"}, False, id="the old label of a node does not stand for the new one"),
        pytest.param({_OLD_REGION: "r"}, {_REGION: "r"}, True, id="the old label of a region"),
        pytest.param({_ZONE: "a", _REGION: "r"}, {_ZONE: "a", _REGION: "s"}, False, id="the zone but not the region"),
        pytest.param({_ZONE: "a"}, {_REGION: "r"}, False, id="a node with only a region"),
        pytest.param({_ZONE: "a"}, {}, True, id="a node without zone labels"),
        pytest.param({}, {_ZONE: "a"}, True, id="a volume without zone labels"),
    ],
)
def test_volume_is_reached_from_nodes_of_its_zones(
    of_volume: dict[str, str], of_node: dict[str, str], reaches: bool
) -> None:
    volume = make_pv("v")
    volume["metadata"]["labels"] = of_volume
    objects = make_node_object("a", labels=of_node), make_pvc("data", volume="v"), volume, *_OTHER
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)

    failures = VolumeZone().filter(
        PodSignature.of(make_pod().namespace("default").spec(volumes=uses("data")).obj()).info, snapshot
    )

    assert any(each.rejected.any() for each in failures) is not reaches


@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_claim_that_is_created_for_the_pod_rejects_no_node(*, is_bound: bool, is_there: bool) -> None:
    """As in kube-scheduler, whose plugin reads only the claims that the pod names."""
    template = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    pod = make_pod().spec(volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}])
    volume = make_pv("v")
    volume["metadata"]["labels"] = {_ZONE: "b"}
    claim = make_pvc("pod-data", volume="v") if is_bound else make_pvc("pod-data")
    objects = make_node_object("a", labels={_ZONE: "a"}), volume, *([claim] if is_there else []), *_OTHER
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    info = PodSignature.of(pod.namespace("default").obj()).info

    assert VolumeZone().pre_filter(info, snapshot).reason == ""
    assert not any(each.rejected.any() for each in VolumeZone().filter(info, snapshot))
