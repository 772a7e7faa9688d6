"""A snapshot that differs in a few nodes shares the rest."""

import pytest

from tests.cluster.cache.caches import cache_of, pod, whole_cache
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from tests.support.views import said
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated, with_nodes


def test_a_pod_event_leaves_the_facts_of_nodes_shared() -> None:
    cache = cache_of(make_node_object("a", taints=["k:NoSchedule"]), make_node_object("b"))
    before = cache.snapshot()
    cache.apply("Pod", "ADDED", pod())
    after = cache.snapshot()
    assert after.labels is before.labels
    assert after.taints is before.taints
    assert after.images is before.images
    assert after.rows is before.rows
    assert after.allocatable("cpu") is before.allocatable("cpu")
    assert after.nodes[1] is before.nodes[1]


def test_an_event_about_a_label_leaves_taints_and_other_labels_shared() -> None:
    cache = cache_of(make_node_object("a", taints=["k:NoSchedule"]), make_node_object("b"))
    before = cache.snapshot()
    cache.apply("Node", "MODIFIED", make_node_object("b", labels={"zone": "z"}))
    after = cache.snapshot()
    assert after.labels.matches("zone", "In", ["z"]).tolist() == [False, True]
    assert after.taints is before.taints
    assert after.pods is before.pods


def test_a_label_that_a_node_has_lost_matches_it_no_more() -> None:
    cache = cache_of(make_node_object("a", labels={"zone": "z"}), make_node_object("b", labels={"zone": "z"}))
    assert cache.snapshot().labels.matches("zone", "In", ["z"]).tolist() == [True, True]
    cache.apply("Node", "MODIFIED", make_node_object("b"))
    assert cache.snapshot().labels.matches("zone", "In", ["z"]).tolist() == [True, False]


def test_a_host_port_of_a_pod_that_has_ended_is_free() -> None:
    busy = node("a", make_pod("first").host_port(80), make_pod("second").host_port(81))
    left = NodeInfo.of(busy.node, busy.pods[1:])
    after = updated(Snapshot.of([busy]), [left], 1)
    assert after.load.host_ports == Snapshot.of([left]).load.host_ports
    assert [*after.load.host_ports] == [("TCP", 81)]


def ports(name: str, *numbers: int, protocol: str = "TCP") -> PodBuilder:
    pod = make_pod(name)
    for each in numbers:
        pod = pod.host_port(each, protocol=protocol)
    return pod


WEB, BOTH, DNS, PLAIN = ports("web", 80), ports("both", 80, 443), ports("dns", 53, protocol="UDP"), make_pod("plain")


@pytest.mark.parametrize(
    "pods_on",
    [
        pytest.param({"b": [WEB, PLAIN], "d": [BOTH], "f": [DNS]}, id="nothing changes"),
        pytest.param({"a": [], "b": [WEB, PLAIN], "d": [BOTH], "f": [DNS]}, id="a node comes before all"),
        pytest.param({"b": [WEB, PLAIN], "c": [WEB], "d": [BOTH], "f": [DNS]}, id="one with a port comes between"),
        pytest.param({"d": [BOTH], "f": [DNS]}, id="the first node goes"),
        pytest.param({"b": [WEB, PLAIN], "f": [DNS]}, id="one goes that shares a port"),
        pytest.param({"b": [WEB, PLAIN], "d": [BOTH]}, id="one goes that has a port alone"),
        pytest.param({"a": [DNS], "d": [BOTH], "e": [], "f": [PLAIN]}, id="nodes come and go, and a port is free"),
        pytest.param({"b": [PLAIN], "d": [BOTH], "f": [DNS]}, id="a pod with a port ends"),
        pytest.param({"b": [WEB], "d": [BOTH], "f": [DNS]}, id="a pod without a port ends"),
        pytest.param({"b": [PLAIN], "d": [BOTH], "f": [DNS, WEB]}, id="it is created again on another node"),
        pytest.param({"b": [WEB, PLAIN, DNS], "d": [BOTH], "f": [DNS]}, id="a pod with another port comes"),
        pytest.param({"b": [BOTH, PLAIN], "d": [WEB], "f": [DNS]}, id="pods change places"),
        pytest.param({"b": [], "d": [], "f": []}, id="all pods end"),
    ],
)
def test_ports_and_pods_of_changed_nodes_are_those_of_a_new_snapshot(pods_on: dict[str, list[PodBuilder]]) -> None:
    first = {"b": [WEB, PLAIN], "d": [BOTH], "f": [DNS]}
    before = Snapshot.of(node(name, *pods) for name, pods in first.items())
    infos = [node(name, *pods) for name, pods in pods_on.items()]

    anew = said(Snapshot.of(infos))

    assert said(with_nodes(before, infos, 1)) == anew
    if pods_on.keys() == first.keys():
        assert said(updated(before, infos, 1)) == anew


_NOT_OF_NODES = ("namespaces", "workloads", "storage", "csi", "devices", "priority_classes", "full_quotas")


def test_changed_nodes_keep_the_fields_that_do_not_depend_on_nodes() -> None:
    cache = whole_cache()
    before = cache.snapshot()
    cache.apply("Node", "ADDED", make_node_object("b"))
    after = cache.snapshot()
    assert list(after.rows) == ["a", "b"]
    assert all(getattr(after, name) is getattr(before, name) for name in _NOT_OF_NODES)
    assert [name for name in _NOT_OF_NODES if said(after)[name] == said(ClusterCache().snapshot())[name]] == []
