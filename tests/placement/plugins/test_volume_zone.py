"""VolumeZone: a volume with zone labels refuses nodes of other zones, also without VolumeBinding."""

import json
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import make_csi_node, make_pv, make_pvc, make_storage_class, uses
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.scheduler import Placement, Scheduler

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
