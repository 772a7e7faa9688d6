"""The objects of CSI drivers."""

import pytest

from webhook.cluster.storage.csi import CsiDriver, CsiStorageCapacity, VolumeAttachment, whole_bytes
from webhook.documents.field import InvalidInput


def test_a_driver_says_what_its_pods_need() -> None:
    spec = {"storageCapacity": True, "preventPodSchedulingIfMissing": True}

    assert CsiDriver.of({"metadata": {"name": "d"}, "spec": spec}) == CsiDriver("d", True, True)
    assert CsiDriver.of({"metadata": {"name": "d"}}) == CsiDriver("d", False)


@pytest.mark.parametrize(
    ("amounts", "limit", "free"),
    [
        ({}, None, None),
        ({"capacity": "1Ki"}, 1024, 1024),
        ({"capacity": "1Ki", "maximumVolumeSize": "5"}, 5, 1024),
        ({"maximumVolumeSize": "5"}, 5, None),
    ],
)
def test_the_largest_size_limits_a_volume_before_the_capacity(
    amounts: dict[str, str], limit: int | None, free: int | None
) -> None:
    found = CsiStorageCapacity.of({"storageClassName": "fast", **amounts})

    assert (found.limit_bytes, found.capacity_bytes, found.topology) == (limit, free, None)


def test_a_capacity_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="capacity"):
        CsiStorageCapacity.of({"storageClassName": "fast", "capacity": "much"})


def test_an_attachment_names_node_driver_and_volume() -> None:
    spec = {"nodeName": "n", "attacher": "d", "source": {"persistentVolumeName": "v"}}

    assert VolumeAttachment.of({"spec": spec}) == VolumeAttachment("n", "d", "v")


@pytest.mark.parametrize(("milli", "whole"), [(0, 0), (1, 1), (1000, 1), (1001, 2)])
def test_parts_of_bytes_are_rounded_up(milli: int, whole: int) -> None:
    assert whole_bytes(milli) == whole
