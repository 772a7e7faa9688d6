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
