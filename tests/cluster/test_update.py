"""A snapshot that differs in a few nodes shares the rest."""

from tests.cluster.cache.caches import cache_of, pod, whole_cache
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.plugins import node
from tests.support.views import said
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated


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


_NOT_OF_NODES = ("namespaces", "workloads", "storage", "csi", "devices", "priority_classes", "full_quotas")


def test_changed_nodes_keep_the_fields_that_do_not_depend_on_nodes() -> None:
    cache = whole_cache()
    before = cache.snapshot()
    cache.apply("Node", "ADDED", make_node_object("b"))
    after = cache.snapshot()
    assert list(after.rows) == ["a", "b"]
    assert all(getattr(after, name) is getattr(before, name) for name in _NOT_OF_NODES)
    assert [name for name in _NOT_OF_NODES if said(after)[name] == said(ClusterCache().snapshot())[name]] == []
