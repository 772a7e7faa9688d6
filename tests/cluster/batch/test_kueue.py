"""Queues and flavors of Kueue."""

import pytest

from tests.support.objects.batch_objects import (
    cluster_queue,
    local_queue,
    resource_flavor,
)
from webhook.cluster.batch.kueue import ClusterQueue, LocalQueue, ResourceFlavor


@pytest.mark.parametrize(
    ("stop", "is_stopped"), [(None, False), ("None", False), ("Hold", True), ("HoldAndDrain", True)]
)
def test_stop_policy_holds_a_queue_of_kueue(stop: str | None, is_stopped: bool) -> None:
    assert LocalQueue.of(local_queue("q", stop=stop)) == LocalQueue("default", "q", "cards", is_stopped)
    assert ClusterQueue.of(cluster_queue("q", {}, stop=stop)).is_stopped is is_stopped


@pytest.mark.parametrize(
    ("cohort", "borrowing", "most"),
    [("", None, 4), ("", {"nvidia.com/gpu": "2"}, 4), ("all", {"nvidia.com/gpu": "2"}, 6), ("all", None, None)],
)
def test_cluster_queue_borrows_within_a_cohort_alone(
    cohort: str, borrowing: dict[str, str] | None, most: int | None
) -> None:
    made = cluster_queue("q", {"spot": {"nvidia.com/gpu": "4"}}, cohort=cohort, borrowing=borrowing)
    (group,) = ClusterQueue.of(made).groups
    assert group.resources == {"nvidia.com/gpu"}
    assert group.flavors == (("spot", {"nvidia.com/gpu": most}),)


def test_flavor_has_the_labels_of_its_nodes() -> None:
    assert ResourceFlavor.of(resource_flavor("spot", pool="spot")) == ResourceFlavor("spot", {"pool": "spot"})
