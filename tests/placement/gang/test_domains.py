"""The room of each topology domain is that of pods that select it."""

from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.strategies import clusters, pending_pods
from tests.placement.gang.gangs import (
    Object,
    snapshot_of,
)
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.plugins import node
from webhook.backends.references import Within
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.gang.domains import domains_together, follows_itself, in_domain, room_on_nodes
from webhook.placement.gang.empty_cluster import most_possible
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit
from webhook.placement.profiles.plugin_registry import PLUGINS, PluginArgs
from webhook.placement.profiles.profile import DEFAULT, Enabled, Profile
from webhook.placement.replicas.independent_nodes import are_nodes_independent, fill
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod


@settings(max_examples=examples(60))
@given(clusters(), pending_pods(), st.integers(1, 6))
def test_room_of_a_domain_is_that_of_pods_that_select_it(cluster: Any, pod: Object, left: int) -> None:
    nodes, others = cluster
    snapshot = AssumedPods[Any](snapshot_of(nodes, others), {}).base
    waiting = WaitingPod.of(pod)
    info = waiting.signature.info
    if info.gates or follows_itself(info, "zone", snapshot):
        return

    gang, within = GangKey("", "", ""), Within("zone")
    together = domains_together(Scheduler(), waiting, gang, within, snapshot, left, left, never)

    for each in together.domains:
        selector = {**pod["spec"].get("nodeSelector", {}), "zone": each.value}
        if pod["spec"].get("nodeSelector", {}).get("zone", each.value) != each.value:
            continue
        chosen = {**pod, "spec": {**pod["spec"], "nodeSelector": selector}}
        found = place_replicas(Scheduler(), snapshot, repeat(chosen), left)
        if found.is_complete:
            assert min(each.fits, left) == found.placed


@settings(max_examples=examples(60))
@given(clusters(), pending_pods())
def test_room_on_nodes_is_that_of_a_search(cluster: Any, pod: Object) -> None:
    nodes, others = cluster
    snapshot, waiting = snapshot_of(nodes, others), WaitingPod.of(pod)
    if not are_nodes_independent(Scheduler(), waiting.signature, snapshot):
        return

    found = fill(Scheduler(), waiting.signature, waiting.running, snapshot)

    np.testing.assert_array_equal(room_on_nodes(Scheduler(), waiting.signature, snapshot, never), found.copies)


def test_a_pod_in_a_domain_keeps_its_own_node_selector() -> None:
    within = Within("rack", parents=("zone",), below=("host",))
    pod = in_domain(WaitingPod.of(make_pod().node_selector("disk", "nvme").obj()), within, ("a", "1"))

    info = pod.signature.info
    assert (info.node_selector, info.domain) == ((("disk", "nvme"),), (("zone", "a"), ("rack", "1"), ("host", None)))


def test_room_on_a_node_is_that_beside_its_nominated_pods() -> None:
    nominated = make_pod("other").gpu(3).status(nominatedNodeName="a").obj()
    snapshot = snapshot_of([make_node_object("a", capacity={"nvidia.com/gpu": 8})], [nominated])

    assert room_on_nodes(Scheduler(), WaitingPod.of(make_pod().gpu(2).obj()).signature, snapshot, never).tolist() == [2]


IGNORING = [
    pytest.param(PluginArgs(), [2, 0, 1], id="all count"),
    pytest.param(PluginArgs(ignored_resources=frozenset({"example.com/token"})), [4, 0, 2], id="tokens do not count"),
    pytest.param(PluginArgs(ignored_resource_groups=frozenset({"example.com"})), [4, 0, 2], id="nor of their group"),
    pytest.param(PluginArgs(ignored_resources=frozenset({"nvidia.com/gpu"})), [2, 2, 1], id="cards do not count"),
    pytest.param(
        PluginArgs(ignored_resources=frozenset({"nvidia.com/gpu"}), ignored_resource_groups=frozenset({"example.com"})),
        [8, 8, 4],
        id="only cpu counts",
    ),
]


@pytest.mark.parametrize(("args", "room"), IGNORING)
def test_only_the_resources_that_the_profile_counts_limit_the_room(args: PluginArgs, room: list[int]) -> None:
    capacity = {"cpu": "8", "example.com/token": "2", "pods": "9"}
    nodes = [
        node("a", capacity=capacity | {"nvidia.com/gpu": "4"}, labels={"rack": "1"}),
        node("b", capacity=capacity, labels={"rack": "2"}),
        node(
            "c",
            make_pod("x").requests(cpu=4, **{"nvidia.com/gpu": 2, "example.com/token": 1}),
            capacity=capacity | {"nvidia.com/gpu": "4"},
            labels={"rack": "3"},
        ),
    ]
    snapshot, scheduler = Snapshot.of(nodes), Scheduler(Profile.of("ignoring", args))
    pod = WaitingPod.of(make_pod().requests(cpu=1, **{"nvidia.com/gpu": 1, "example.com/token": 1}).obj())

    found = fill(scheduler, pod.signature, pod.running, snapshot)
    together = domains_together(scheduler, pod, GangKey("", "", ""), Within("rack"), snapshot, 9, 9, never)

    assert room_on_nodes(scheduler, pod.signature, snapshot, never).tolist() == room == found.copies.tolist()
    assert [each.fits for each in together.domains] == room
    # Without its pod, the third node is as the first.
    assert [each.fits_empty for each in together.domains] == [*room[:2], room[0]]


@pytest.mark.parametrize(
    ("running", "room"),
    [
        pytest.param(0, 3, id="an empty node"),
        pytest.param(1, 2, id="a pod runs"),
        pytest.param(3, 1, id="it takes one more, as far as is known"),
    ],
)
def test_profile_without_the_filter_of_resources_is_bounded_by_the_number_of_pods_only(running: int, room: int) -> None:
    every = [row.name for row in PLUGINS if row.name != NodeResourcesFit.name]
    scheduler = Scheduler(Profile.of("unlimited", enabled=Enabled((), (*every,), ())))
    snapshot = Snapshot.of([node("a", *(make_pod(f"p{at}") for at in range(running)), capacity={"pods": "3"})])

    assert room_on_nodes(scheduler, WaitingPod.of(make_pod().gpu(9).obj()).signature, snapshot, never).tolist() == [
        room
    ]


@pytest.mark.parametrize(
    ("nominated", "room"),
    [pytest.param(0, 3, id="none"), pytest.param(1, 2, id="one pod"), pytest.param(3, 0, id="it is full with them")],
)
def test_room_for_the_number_of_pods_is_that_beside_nominated_pods(nominated: int, room: int) -> None:
    pods = [make_pod(f"other-{at}").status(nominatedNodeName="a").obj() for at in range(nominated)]
    snapshot = snapshot_of([make_node_object("a", capacity={"pods": 3})], pods)

    assert room_on_nodes(Scheduler(), WaitingPod.of(make_pod().obj()).signature, snapshot, never).tolist() == [room]


@pytest.mark.parametrize(("profile", "room"), [(DEFAULT, 2), (VOLCANO, 2), (KAI, 8)])
def test_requests_of_the_pod_as_a_whole_count_for_the_schedulers_that_read_them(profile: Profile, room: int) -> None:
    snapshot, scheduler = Snapshot.of([node("a", capacity={"cpu": "8", "pods": "9"})]), Scheduler(profile)
    pod = WaitingPod.of(make_pod().requests(cpu=1).pod_resources(cpu=4).obj())

    assert room_on_nodes(scheduler, pod.signature, snapshot, never).tolist() == [room]
    assert most_possible(scheduler, pod.signature, snapshot, never) == room


def test_there_is_no_room_for_a_request_that_no_node_can_have() -> None:
    snapshot = Snapshot.of([node("a", capacity={"cpu": "8", "pods": "9"})])
    pod = WaitingPod.of(make_pod().requests(cpu=str(2**63 - 1)).obj())

    assert room_on_nodes(Scheduler(), pod.signature, snapshot, never).tolist() == [0]
    assert most_possible(Scheduler(), pod.signature, snapshot, never) == 0
