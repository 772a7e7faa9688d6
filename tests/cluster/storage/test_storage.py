"""The storage objects of a cluster, and which kinds are known."""

import pytest

from tests.placement.framework.volumes import (
    LIMITS,
    Object,
    all_kinds,
    place,
    pod_with,
)
from tests.support.objects.storage import (
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
)
from webhook.cluster.storage.storage import StorageClass, VolumeLimits


def test_empty_list_of_a_kind_says_that_there_is_none() -> None:
    late = [make_pvc("data", "late"), make_storage_class("late"), make_csi_node("a", disk=1), make_pv("other")]
    drivers = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriverList", "items": []}
    attachments = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachmentList", "items": []}
    assert place(pod_with("data"), *late).unmodelled == ("NodeVolumeLimits", "VolumeBinding")
    placement = place(pod_with("data"), *late, drivers, attachments)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


@pytest.mark.parametrize("known", [make_storage_class("late"), LIMITS[0]], ids=["class", "limits"])
def test_no_claims_beside_other_storage_are_no_claims(known: Object) -> None:
    placement = place(pod_with("data"), known)
    assert (placement.verdict, placement.message) == ("Waiting", all_kinds('persistentvolumeclaim "data" not found'))


_STABLE, _BETA = "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"


@pytest.mark.parametrize(
    ("annotations", "is_default"),
    [
        ({}, False),
        ({_STABLE: "true"}, True),
        ({_BETA: "true"}, True),
        ({_STABLE: "false", _BETA: "true"}, True),
        ({_STABLE: "true", _BETA: "false"}, True),
        ({_STABLE: "false"}, False),
        ({_STABLE: "yes", _BETA: "True"}, False),
    ],
)
def test_class_is_the_default_by_either_annotation(annotations: dict[str, str], is_default: bool) -> None:
    """Source: k8s.io/kubernetes/pkg/volume/util/storageclass.go, IsDefaultAnnotation"""
    content = make_storage_class("disks")
    content["metadata"]["annotations"] = annotations
    assert StorageClass.of(content).is_default is is_default


@pytest.mark.parametrize(
    "unlimited", [{}, {"allocatable": None}, {"allocatable": {}}, {"allocatable": {"count": None}}]
)
def test_an_installed_driver_without_a_count_has_no_limit(unlimited: Object) -> None:
    content = make_csi_node("a", disk=1, full=0)
    content["spec"]["drivers"].append({"name": "any.example.com", "nodeID": "a", "topologyKeys": None, **unlimited})
    found = VolumeLimits.of(content)

    assert found.by_driver == {"disk.example.com": 1, "full.example.com": 0}
    assert found.drivers == {"disk.example.com", "full.example.com", "any.example.com"}
