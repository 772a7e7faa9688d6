"""CSI volume handles of migrated in-tree volumes."""

from typing import Any

import pytest

from webhook.kube.pod.volumes import PodReference, read_volumes, taken_over
from webhook.kube.reader import Reader


@pytest.mark.parametrize(
    ("kind", "source", "zones", "handle"),
    [
        pytest.param("awsElasticBlockStore", {"volumeID": "aws://a/vol-1"}, "", "vol-1", id="AWS"),
        pytest.param("awsElasticBlockStore", {"volumeID": "aws://a/vol-1/x"}, "", "", id="AWS, a longer path"),
        pytest.param("awsElasticBlockStore", {"volumeID": "aws://a/disk-1"}, "", "", id="AWS, no volume"),
        pytest.param(
            "gcePersistentDisk",
            {"pdName": "d"},
            "us-central1-a__us-central1-b",
            "projects/UNSPECIFIED/regions/us-central1/disks/d",
            id="GCE, two zones of a region",
        ),
        pytest.param(
            "gcePersistentDisk", {"pdName": "d"}, "us-central1-a__us-east1-b", "", id="GCE, zones of two regions"
        ),
        pytest.param("gcePersistentDisk", {"pdName": "d"}, "a__b", "", id="GCE, no zones of it"),
    ],
)
def test_the_handle_of_a_migrated_volume(kind: str, source: dict[str, Any], zones: str, handle: str) -> None:
    assert taken_over(Reader({kind: source}), kind, zones).handle == handle


def test_claim_counts_beside_a_volume_of_any_node() -> None:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]
    found = read_volumes(Reader({"volumes": volumes}), "team-a", PodReference("p", ""))
    assert [use.name for use in found.claims] == ["data"]
