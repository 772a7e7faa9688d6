"""The kinds that a cluster may have, and their fields of a snapshot."""

import pytest

from tests.support.objects.batch_objects import (
    BATCH_OBJECTS,
    cluster_queue,
)
from tests.support.objects.builders import make_node_object
from tests.support.views import made_anew, said
from webhook.cluster.batch.kueue import NO_KUEUE
from webhook.cluster.batch.queues import NO_KAI, NO_POD_GROUPS, KaiQueue, VolcanoQueue
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.objects.hyper_nodes import NO_VOLCANO
from webhook.cluster.objects.resource_quota import ResourceQuota
from webhook.cluster.optional_kinds import BATCH_KINDS, snapshot_fields


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


@pytest.mark.parametrize("order", [1, -1])
def test_first_quota_by_name_that_denies_stands_for_its_namespace(order: int) -> None:
    quotas = [("x", "b", True), ("x", "a", True), ("x", "0", False), ("y", "c", True), ("z", "d", False)]
    found = snapshot_fields({"ResourceQuota": [ResourceQuota(*each) for each in quotas[::order]]}, ["full_quotas"])

    assert found == {"full_quotas": {"x": "a", "y": "c"}}
