"""The room of each topology domain is that of pods that select it."""

from itertools import repeat
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.strategies import clusters, pending_pods
from tests.placement.gang.gangs import (
    Object,
    snapshot_of,
)
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from webhook.backends.references import Within
from webhook.kube.deadline import never
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.domains import domains_together, follows_itself, in_domain, room_on_nodes
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
