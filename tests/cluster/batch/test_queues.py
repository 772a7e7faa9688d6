"""Queues and pod groups of Volcano and KAI."""

import pytest

from tests.support.objects.batch_objects import (
    kai_queue,
    volcano_group,
    volcano_queue,
)
from webhook.cluster.batch.queues import KaiQueue, PodGroup, VolcanoQueue


def test_volcano_queue_has_its_state_and_amounts() -> None:
    made = volcano_queue("a", state="Closed", capability={"cpu": "2"}, allocated={"cpu": "500m", "memory": "1Ki"})
    assert VolcanoQueue.of(made) == VolcanoQueue("a", "Closed", {"cpu": 2000}, {"cpu": 500, "memory": 1024})


def test_volcano_group_has_its_queue_and_phase() -> None:
    found = PodGroup.of_volcano(volcano_group("g", queue="q"))
    assert found == PodGroup("default", "g", 2, "q", "Inqueue", topology_plugin="network-topology-aware")


@pytest.mark.parametrize(("parent", "priority", "name"), [(None, 7, "high"), ("root", None, "")])
def test_the_priority_of_a_group_in_another_one_is_not_known(parent: str | None, priority: int, name: str) -> None:
    spec = {"priority": 7, "priorityClassName": "high", "parentCompositePodGroupName": parent}
    found = PodGroup.of_native({"metadata": {"name": "g"}, "spec": spec})
    assert (found.priority, found.priority_class) == (priority, name)


def test_limit_below_zero_of_a_kai_queue_is_none() -> None:
    made = kai_queue("a", parent="p", limits={"gpu": 1.5, "memory": 2}, allocated={"nvidia.com/gpu": "1"})
    assert KaiQueue.of(made) == KaiQueue("a", "p", {"nvidia.com/gpu": 1.5, "memory": 2e6}, {"nvidia.com/gpu": 1})


def test_kai_queue_without_resources_is_not_limited() -> None:
    assert KaiQueue.of({"metadata": {"name": "a"}, "spec": {}}) == KaiQueue("a", "", {}, {})
