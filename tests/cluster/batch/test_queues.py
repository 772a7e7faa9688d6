"""Queues and pod groups of Volcano and KAI."""

from typing import Any

import pytest

from tests.support.objects.batch_objects import (
    kai_group,
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


OF_RACK = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}
OF_ZONE = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "zone"}}


@pytest.mark.parametrize(
    ("own", "parts", "wanted", "doubt"),
    [
        pytest.param(OF_RACK, [], ("rack", 9, ("default",)), "", id="without subgroups"),
        pytest.param(OF_RACK, [{"name": "a"}, {"name": "b"}], ("rack", 4, ("a", "b")), "", id="of the group"),
        pytest.param({}, [{"name": "a", **OF_RACK}], ("rack", 2, ("a",)), "", id="of the only subgroup"),
        pytest.param(OF_RACK, [{"name": "a", **OF_RACK}], ("rack", 2, ("a",)), "", id="of both"),
        pytest.param(
            {}, [{"name": "a", **OF_RACK}, {"name": "b", "parent": "A"}], ("rack", 2, ("b",)), "", id="nested"
        ),
        pytest.param(OF_ZONE, [{"name": "a", **OF_RACK}], ("zone", 2, ("a",)), "of their own", id="rack in a zone"),
        pytest.param({}, [{"name": "a", **OF_RACK}, {"name": "b"}], ("", 4, ("a", "b")), "of their own", id="of one"),
        pytest.param(OF_RACK, [{"name": "a"}, {"name": "a"}], ("", 0, ()), "names", id="duplicates"),
        pytest.param(OF_RACK, [{"name": "a", "parent": "b"}], ("", 0, ()), "not valid", id="without its parent"),
        pytest.param(
            {},
            [{"name": "a", "parent": "b", **OF_RACK}, {"name": "b", "parent": "a"}, {"name": "c"}],
            ("", 0, ()),
            "not valid",
            id="circle beside the only subgroup",
        ),
        pytest.param({}, [{}], ("", 0, ()), "names", id="without a name"),
        pytest.param({}, [{"name": f"a{each}"} for each in range(65)], ("", 0, ()), "too many", id="too many"),
    ],
)
def test_kai_group_has_the_domain_of_its_only_subgroup(
    own: dict[str, Any], parts: list[dict[str, Any]], wanted: tuple[str, int, tuple[str, ...]], doubt: str
) -> None:
    group = kai_group("g", members=9)
    group["spec"] |= {**own, "subGroups": [{"minMember": 2, **each} for each in parts]}

    found = PodGroup.of_kai(group)

    assert (found.topology_key, found.members, found.subgroups) == wanted
    assert (doubt in found.doubt, bool(found.doubt)) == (True, bool(doubt))


def test_limit_below_zero_of_a_kai_queue_is_none() -> None:
    made = kai_queue("a", parent="p", limits={"gpu": 1.5, "memory": 2}, allocated={"nvidia.com/gpu": "1"})
    assert KaiQueue.of(made) == KaiQueue("a", "p", {"nvidia.com/gpu": 1.5, "memory": 2e6}, {"nvidia.com/gpu": 1})


def test_kai_queue_without_resources_is_not_limited() -> None:
    assert KaiQueue.of({"metadata": {"name": "a"}, "spec": {}}) == KaiQueue("a", "", {}, {})


@pytest.mark.parametrize(("limit", "limits"), [(-1, {}), (0, {"cpu": 0.0}), (0.5, {"cpu": 0.5}), (2, {"cpu": 2.0})])
def test_limit_of_zero_of_a_kai_queue_limits_it(limit: float, limits: dict[str, float]) -> None:
    assert KaiQueue.of(kai_queue("a", limits={"cpu": limit})).limits == limits
