"""Nodes with the same obstacles are one group, of as many obstacles as fit in the bits of an integer."""

import numpy as np
import pytest

from tests.support.objects.builders import make_pod, match_expressions
from tests.support.plugins import node, pod_info
from webhook.cluster.index.node_selector import Requirement
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.taints import Taint
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.suggest.changes import Scenario
from webhook.placement.suggest.node_groups import (
    _TAINTS,
    Masks,
    _add,
    _may_be_tolerated,
    node_groups,
)
from webhook.placement.suggest.pod_changes import TolerateTaint, WithoutRequirement

_MOST = 40
_FIRST, _SECOND = np.array([True, False, False]), np.array([False, True, False])
_NONE = np.zeros(3, dtype=np.bool_)


def test_obstacle_keeps_the_pod_from_every_node_that_it_is_found_on() -> None:
    masks: Masks = {"other": _NONE}
    _add(masks, "cpu", _FIRST)
    _add(masks, "cpu", _SECOND)
    assert masks["cpu"].tolist() == [True, True, False]


def test_obstacle_of_no_node_is_none() -> None:
    masks: Masks = {"other": _NONE}
    _add(masks, "cpu", _NONE)
    assert list(masks) == ["other"]


@pytest.mark.parametrize("has_taints", [False, True])
def test_obstacles_beyond_the_most_are_among_the_others(has_taints: bool) -> None:
    """Taints are not one of them: they have no bit."""
    masks: Masks = {"other": _NONE}
    if has_taints:
        masks[_TAINTS] = _FIRST
    for number in range(_MOST + 2):
        _add(masks, f"obstacle {number}", _FIRST)
    _add(masks, "obstacle 0", _SECOND)
    _add(masks, _TAINTS, _FIRST)

    reported = [key for key in masks if key not in ("other", _TAINTS)]
    assert reported == [f"obstacle {number}" for number in range(_MOST)]
    assert masks["obstacle 0"].tolist() == [True, True, False]
    assert masks["other"].tolist() == [True, False, False]
    assert _TAINTS in masks


def _groups(*nodes: NodeInfo) -> list[tuple[list[int], int]]:
    pod = make_pod().gpu(2).require_node(match_expressions(("pool", "In", ["a"])))
    found = node_groups(DEFAULT, Scenario(pod_info(pod), Snapshot.of(nodes)), 9, never)
    return [(group.rows.tolist(), group.obstacles) for group in found]


def _node(name: str, pool: str = "a", taint: str = "", gpus: int = 8) -> NodeInfo:
    return node(name, labels={"pool": pool}, taints=[taint] if taint else [], capacity={"nvidia.com/gpu": gpus})


def test_fewest_obstacles_come_first_and_then_the_largest_group() -> None:
    nodes = (
        _node("a", pool="b"),
        _node("b", gpus=1),
        _node("c", taint="use=c:NoSchedule"),
        _node("d", pool="b", gpus=1),
        _node("e", taint="use=c:NoExecute"),
    )
    assert sorted(_groups(*nodes)[1:3]) == [([0], 1), ([1], 1)]
    assert [_groups(*nodes)[place] for place in (0, 3)] == [([2, 4], 1), ([3], 2)]


def test_group_says_what_would_have_to_be_otherwise() -> None:
    pod = make_pod().gpu(2).require_node(match_expressions(("pool", "In", ["a"])))
    snapshot = Snapshot.of([_node("n", pool="b", taint="use=c:NoSchedule", gpus=1)])

    (group,) = node_groups(DEFAULT, Scenario(pod_info(pod), snapshot), 9, never)

    assert group.changes == (TolerateTaint("use", "c"), WithoutRequirement(Requirement("pool", "In", ("a",))))
    assert group.short == ("nvidia.com/gpu",)
    assert not group.has_too_many_pods
    assert not group.has_taken_ports
    assert not group.is_cordoned


def test_cluster_without_nodes_has_no_group() -> None:
    assert _groups() == []


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("use", True),
        ("nvidia.com/gpu", True),
        ("node.kubernetes.io/not-ready", False),
        ("node.cloudprovider.kubernetes.io/uninitialized", False),
        ("node-role.kubernetes.io/control-plane", False),
        ("node-role.kubernetes.io/master", False),
        ("control-plane", False),
        ("karpenter.sh/disrupted", False),
        ("startup-taint.cluster-autoscaler.kubernetes.io/gpu", False),
        ("startup-taint.cluster-autoscaler.kubernetes.io", True),
    ],
)
def test_taints_of_conditions_and_of_the_control_plane_are_not_to_be_tolerated(key: str, expected: bool) -> None:
    assert _may_be_tolerated(Taint(key, "", "NoSchedule")) is expected
