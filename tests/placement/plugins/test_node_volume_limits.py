"""NodeVolumeLimits: the volumes of a driver that a node can have attached."""

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
_EPHEMERAL = make_pod("p").uid("1").spec(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}])


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


def _owned(uid: str) -> Object:
    claim = make_pvc("p-v", volume="other")
    claim["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}]
    return claim


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        pytest.param(
            make_pod().spec(volumes=uses("data")),
            [],
            'looking up PVC default/data: persistentvolumeclaim "data" not found',
            id="missing",
        ),
        pytest.param(
            _EPHEMERAL,
            [_owned("2")],
            "PVC default/p-v was not created for pod default/p (pod is not owner)",
            id="another pod's",
        ),
        pytest.param(_EPHEMERAL, [_owned("1")], "", id="its own"),
    ],
)
def test_node_volume_limits(pod: PodBuilder, objects: list[Object], reason: str) -> None:
    placement = _place("NodeVolumeLimits", pod, *_OTHER, *objects)
    if reason:
        assert (placement.verdict, placement.message) == ("Waiting", f"0/1 nodes are available: 1 {reason}.")
    else:
        assert placement.verdict == "Feasible"
    assert placement.unmodelled == ()


def test_class_that_is_not_known_may_tell_the_driver() -> None:
    pod = make_pod().spec(volumes=uses("data"))
    placement = _place("NodeVolumeLimits", pod, make_pvc("data", "late", volume="gone"), make_pv("other"))
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("NodeVolumeLimits",))
