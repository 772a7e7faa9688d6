"""The facts of queues, pod groups and flavors, and their fields of a snapshot."""

from typing import Any

import pytest

from tests.support.objects.batch_objects import (
    BATCH_OBJECTS,
    cluster_queue,
    kai_queue,
    local_queue,
    resource_flavor,
    volcano_group,
    volcano_queue,
)
from tests.support.objects.builders import make_node_object
from tests.support.views import made_anew, said
from webhook.cluster.batch.kueue import NO_KUEUE, ClusterQueue, LocalQueue, ResourceFlavor
from webhook.cluster.batch.queues import NO_KAI, NO_POD_GROUPS, NO_VOLCANO, KaiQueue, PodGroup, VolcanoQueue
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.optional_kinds import BATCH_KINDS


def test_volcano_queue_has_its_state_and_amounts() -> None:
    made = volcano_queue("a", state="Closed", capability={"cpu": "2"}, allocated={"cpu": "500m", "memory": "1Ki"})
    assert VolcanoQueue.of(made) == VolcanoQueue("a", "Closed", {"cpu": 2000}, {"cpu": 500, "memory": 1024})


def test_volcano_group_has_its_queue_and_phase() -> None:
    found = PodGroup.of_volcano(volcano_group("g", queue="q"))
    assert found == PodGroup("default", "g", 2, "q", "Inqueue", topology_plugin="network-topology-aware")


def test_limit_below_zero_of_a_kai_queue_is_none() -> None:
    made = kai_queue("a", parent="p", limits={"gpu": 1.5, "memory": 2}, allocated={"nvidia.com/gpu": "1"})
    assert KaiQueue.of(made) == KaiQueue("a", "p", {"nvidia.com/gpu": 1.5, "memory": 2e6}, {"nvidia.com/gpu": 1})


def test_kai_queue_without_resources_is_not_limited() -> None:
    assert KaiQueue.of({"metadata": {"name": "a"}, "spec": {}}) == KaiQueue("a", "", {}, {})


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


@pytest.mark.parametrize("kind", BATCH_KINDS)
@pytest.mark.parametrize("content", [{}, {"spec": 3, "status": []}, {"spec": {"resourceGroups": 3}, "metadata": None}])
def test_unexpected_fields_count_as_not_set(kind: str, content: dict[str, Any]) -> None:
    row = BATCH_KINDS[kind]
    assert row.read(content) == row.read({})


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_facts_are_bounded(kind: str) -> None:
    long = "x" * 100_000
    amounts = {f"{long}{index}": "1" for index in range(1000)}
    spec = {"queue": long, "capability": amounts, "clusterQueue": long, "nodeLabels": amounts, "parentQueue": long}
    facts = BATCH_KINDS[kind].read({"metadata": {"name": long}, "spec": spec, "status": {"allocated": amounts}})
    assert len(str(facts)) < 64 * 1024


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_kind_is_known_when_its_list_is_complete(kind: str) -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace("Namespace", [])
    before = cache.snapshot()
    empty = (NO_VOLCANO, NO_KAI, NO_KUEUE, NO_POD_GROUPS)
    assert (before.volcano, before.kai, before.kueue, before.pod_groups) == empty
    cache.replace(kind, [BATCH_OBJECTS[kind]])
    known = cache.snapshot()
    assert said(known) == said(made_anew([make_node_object("a"), BATCH_OBJECTS[kind]])) != said(before)
    cache.mark_unknown(kind)
    assert said(cache.snapshot()) == said(before)
    assert (cache.snapshot().volcano, cache.snapshot().kai) == (NO_VOLCANO, NO_KAI)


@pytest.mark.parametrize("kind", [kind for kind in BATCH_KINDS if kind.startswith("PodGroup.")])
def test_a_phase_of_a_group_makes_a_snapshot_for_volcano_alone(kind: str) -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace(kind, [BATCH_OBJECTS[kind]])
    before = cache.snapshot()
    cache.apply(kind, "MODIFIED", {**BATCH_OBJECTS[kind], "status": {"phase": "Running"}})
    assert (cache.snapshot() is not before) == (kind == "PodGroup.scheduling.volcano.sh")


def test_kinds_of_one_name_are_told_apart_by_their_group() -> None:
    snapshot = made_anew(BATCH_OBJECTS.values())
    assert isinstance((snapshot.volcano.queues or {})["optional"], VolcanoQueue)
    assert isinstance((snapshot.kai.queues or {})["optional"], KaiQueue)


def test_cluster_file_may_have_another_version_of_a_kind() -> None:
    made = cluster_queue("q", {"spot": {"cpu": "1"}}) | {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    made["spec"]["cohortName"] = "all"
    (group,) = (made_anew([made]).kueue.cluster_queues or {})["q"].groups
    assert group.flavors[0].most == {"cpu": None}


def test_empty_list_of_a_file_states_that_there_are_none() -> None:
    listing = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "QueueList", "items": []}
    snapshot = made_anew([listing])
    assert (snapshot.volcano.queues, snapshot.volcano.groups, snapshot.kai.queues) == ({}, None, None)
