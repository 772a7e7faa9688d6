"""Pods that wait for the node to which they are nominated."""

from dataclasses import replace

from tests.cluster.pods.waiting_nodes import info_of
from tests.support.objects.builders import make_pod
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.nominated_pods import NominatedPods, read_nominated_pod
from webhook.cluster.snapshot import Snapshot

_WAITING = RunningPod.of(make_pod("waits").node_name("a").obj())


def test_no_pod_is_nominated_to_nodes_that_could_be_or_are_emptied() -> None:
    snapshot = replace(Snapshot.of([info_of("a")]), nominated=NominatedPods.of([_WAITING]))
    for changed in (snapshot.without_pods(), snapshot.with_other_nodes([info_of("a")])):
        assert not changed.nominated
        assert changed.is_without_pods


def test_a_nominated_pod_that_is_being_deleted_counts_as_staying() -> None:
    leaving = make_pod("waits").status(nominatedNodeName="a").obj()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert RunningPod.of(leaving).is_terminating
    nominated = read_nominated_pod(leaving)
    assert nominated is not None
    assert not nominated.is_terminating


def test_pods_of_a_node_are_in_the_order_of_their_names() -> None:
    names = (("b", "0"), ("a", "2"), ("a", "1"))
    pods = [RunningPod.of(make_pod(name).namespace(space).node_name("n").obj()) for space, name in names]

    assert [each.name for each in NominatedPods.of(pods).by_node["n"]] == ["1", "2", "0"]
