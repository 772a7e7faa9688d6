"""NodeResourcesFit: requests must be free; the emptier or the fuller node is the better one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import make_device_class
from tests.support.plugins import node, pod_info, rejections, scores
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.release import Release
from webhook.placement.framework.scoring import UtilizationScore
from webhook.placement.plugins.node_resources_fit import (
    NodeResourcesFit,
    ScoringStrategy,
    least_requested_score,
    most_requested_score,
)

_LEAST = NodeResourcesFit(ScoringStrategy(least_requested_score, (("cpu", 1), ("memory", 1))))
_MOST = NodeResourcesFit(ScoringStrategy(most_requested_score, (("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 5))))
_SMALL = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "2"}


@pytest.mark.parametrize(
    ("pod", "reasons"),
    [
        pytest.param(make_pod(), [], id="nothing requested"),
        pytest.param(make_pod().requests(cpu="3"), [], id="exactly what is free"),
        pytest.param(make_pod().requests(cpu="3001m"), ["Insufficient cpu"], id="a thousandth too much"),
        pytest.param(
            make_pod().requests(cpu="5", memory="9Gi").gpu(9),
            ["Insufficient cpu", "Insufficient memory", "Insufficient nvidia.com/gpu"],
            id="every short resource is reported",
        ),
        pytest.param(make_pod().gpu(1, "amd.com/gpu"), ["Insufficient amd.com/gpu"], id="a device that no node has"),
        pytest.param(make_pod().gpu(0, "amd.com/gpu"), [], id="none of it is always there"),
        pytest.param(make_pod().requests(unprefixed="5"), [], id="what no scheduler counts"),
        pytest.param(
            make_pod().requests(**{"deviceclass.resource.kubernetes.io/gpu": 1}), [], id="claims are not counted here"
        ),
        pytest.param(make_pod().requests(memory="1e30"), ["Insufficient memory"], id="beyond any node"),
    ],
)
def test_node_that_is_short_is_rejected(pod: PodBuilder, reasons: list[str]) -> None:
    running = make_pod().requests(cpu="1", memory="1Gi").gpu(1)
    found = rejections(_LEAST, pod, node("a", running, capacity=_SMALL))
    assert found == ({"a": reasons} if reasons else {})


def test_amounts_beyond_the_largest_are_all_alike() -> None:
    huge = {"cpu": "4", "memory": "8Ei", "pods": "2"}
    assert rejections(_LEAST, make_pod().requests(memory="7Ei"), node("a", capacity=huge)) == {}


@pytest.mark.parametrize(("running", "reasons"), [(1, []), (2, ["Too many pods"]), (3, ["Too many pods"])])
def test_node_that_is_full_of_pods_is_rejected(running: int, reasons: list[str]) -> None:
    found = rejections(_LEAST, make_pod(), node("a", *[make_pod()] * running, capacity=_SMALL))
    assert found == ({"a": reasons} if reasons else {})


def test_full_node_is_reported_short_of_resources_as_well() -> None:
    found = rejections(_LEAST, make_pod().requests(cpu="9"), node("a", capacity={"cpu": "1", "pods": "0"}))
    assert found == {"a": ["Insufficient cpu", "Too many pods"]}


@pytest.mark.parametrize(
    ("pod", "capacity", "expected"),
    [
        pytest.param(make_pod().requests(cpu="1", memory="2Gi"), {"cpu": "4", "memory": "8Gi"}, 75, id="a quarter"),
        pytest.param(make_pod().requests(cpu="1", memory="8Gi"), {"cpu": "4", "memory": "8Gi"}, 37, id="mean, rounded"),
        pytest.param(make_pod().requests(cpu="3", memory="0"), {"cpu": "7", "memory": "1Gi"}, 78, id="57 and 100"),
        pytest.param(make_pod().requests(cpu="9", memory="0"), {"cpu": "4", "memory": "8Gi"}, 50, id="too much is 0"),
        pytest.param(make_pod(), {"cpu": "1", "memory": "400Mi"}, 70, id="defaults of a pod without requests"),
        pytest.param(make_pod().requests(cpu="1"), {"cpu": "4", "memory": "0"}, 75, id="a resource that is not there"),
        pytest.param(make_pod(), {"cpu": "0", "memory": "0"}, 0, id="nothing is there"),
    ],
)
def test_least_allocated_score(pod: PodBuilder, capacity: dict[str, Any], expected: int) -> None:
    assert scores(_LEAST, pod, node("a", capacity=capacity)) == [expected]


def test_node_that_is_used_up_has_nothing_free() -> None:
    requested, capacity = np.array([7, 8, 9]), np.array([8, 8, 8])
    assert least_requested_score(requested, capacity).tolist() == [12, 0, 0]
    assert most_requested_score(requested, capacity).tolist() == [87, 100, 100]


@pytest.mark.parametrize(
    ("pod", "running", "expected"),
    [
        pytest.param(make_pod().requests(cpu="1", memory="2Gi"), make_pod().gpu(4), 27, id="no card, no card score"),
        pytest.param(
            make_pod().requests(cpu="1", memory="2Gi").gpu(2),
            make_pod().requests(cpu="1", memory="2Gi").gpu(2),
            50,
            id="half full",
        ),
        pytest.param(
            make_pod().requests(cpu="0", memory="0").gpu(4),
            make_pod().requests(cpu="0", memory="0").gpu(4),
            71,
            id="cards count five times",
        ),
        pytest.param(
            make_pod().requests(cpu="9", memory="0"), make_pod().requests(cpu="0", memory="0"), 50, id="cut at 100"
        ),
    ],
)
def test_most_allocated_score(pod: PodBuilder, running: PodBuilder, expected: int) -> None:
    assert scores(_MOST, pod, node("a", running, capacity=_SMALL)) == [expected]


def test_running_pods_without_requests_count_in_the_score() -> None:
    nodes = node("a", capacity=_SMALL), node("b", make_pod(), make_pod(), capacity=_SMALL)
    assert scores(_LEAST, make_pod().requests(cpu="0", memory="0"), *nodes) == [100, 95]


def test_huge_nodes_are_scored_without_overflow() -> None:
    huge = {"cpu": "1e15", "memory": "8Ei"}
    nodes = node("a", capacity=huge), node("b", make_pod().requests(cpu="1e15", memory="8Ei"), capacity=huge)
    assert scores(_LEAST, make_pod(), *nodes) == [99, 0]
    assert scores(_MOST, make_pod(), *nodes) == [0, 100]


@pytest.mark.parametrize(
    ("shape", "used", "expected"),
    [
        pytest.param(((0, 0), (100, 100)), 1, 25, id="rising"),
        pytest.param(((0, 100), (100, 0)), 1, 75, id="falling"),
        pytest.param(((0, 0), (50, 100), (100, 0)), 3, 50, id="a peak"),
        pytest.param(((40, 10), (60, 30)), 1, 10, id="level before the first point"),
        pytest.param(((40, 10), (60, 30)), 3, 30, id="level after the last point"),
        pytest.param(((0, 100), (30, 0)), 1, 17, id="a quotient is rounded towards zero"),
        pytest.param(((0, 0), (100, 100)), 9, 100, id="more than there is"),
    ],
)
def test_requested_to_capacity_ratio_follows_the_broken_line(
    shape: tuple[tuple[int, int], ...], used: int, expected: int
) -> None:
    plugin = NodeResourcesFit(ScoringStrategy(UtilizationScore(shape), (("cpu", 1),), counts_zeros=False))
    assert scores(plugin, make_pod().requests(cpu=str(used)), node("a", capacity={"cpu": "4"})) == [expected]


def test_resource_that_scores_nothing_weighs_nothing_in_requested_to_capacity_ratio() -> None:
    score = UtilizationScore(((0, 0), (100, 100)))
    plugin = NodeResourcesFit(ScoringStrategy(score, (("cpu", 1), ("nvidia.com/gpu", 2)), counts_zeros=False))
    pod = make_pod().requests(cpu="1m").gpu(3)
    # 37 of the cards and 0 of cpu: the cards alone count.
    assert scores(plugin, pod, node("a", capacity={"cpu": "4", "nvidia.com/gpu": 8})) == [37]
    # A third of 50 and two of 37.
    assert scores(
        plugin, make_pod().requests(cpu="2").gpu(3), node("a", capacity={"cpu": "4", "nvidia.com/gpu": 8})
    ) == [41]


@pytest.mark.parametrize(
    ("plugin", "reasons"),
    [
        pytest.param(NodeResourcesFit(ignored=frozenset({"example.com/a"})), ["Insufficient example.com/b"], id="one"),
        pytest.param(NodeResourcesFit(ignored_groups=frozenset({"example.com"})), [], id="a group"),
        pytest.param(
            NodeResourcesFit(ignored=frozenset({"cpu"})),
            ["Insufficient example.com/a", "Insufficient example.com/b"],
            id="none but extended resources",
        ),
    ],
)
def test_ignored_resource_is_not_missed(plugin: NodeResourcesFit, reasons: list[str]) -> None:
    pod = make_pod().gpu(1, "example.com/a").gpu(1, "example.com/b")
    assert rejections(plugin, pod, node("a")) == ({"a": reasons} if reasons else {})


@pytest.mark.parametrize(
    ("minor", "rejected"),
    [
        pytest.param(35, ["a", "c", "d"], id="no class backs a resource"),
        pytest.param(36, ["d"], id="DynamicResources checks nodes that do not offer it"),
    ],
)
def test_resource_that_a_device_class_backs_is_checked_on_nodes_that_offer_it(minor: int, rejected: list[str]) -> None:
    """Node a has none, b enough, c lists zero, and d has too few."""
    offered = {"a": {}, "b": {"example.com/card": 2}, "c": {"example.com/card": 0}, "d": {"example.com/card": 1}}
    objects = [make_node_object(name, capacity=each) for name, each in offered.items()]
    objects += [make_device_class("card", extended_resource="example.com/card")]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    nodes = replace(snapshot, release=Release(minor))

    failures = [*_LEAST.filter(pod_info(make_pod().gpu(2, "example.com/card")), nodes)]

    short = np.logical_or.reduce([each.rejected for each in failures])
    assert [info.node.name for info, is_short in zip(nodes.nodes, short, strict=True) if is_short] == rejected
