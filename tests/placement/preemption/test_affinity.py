"""Victims by required affinity and anti-affinity."""

from collections.abc import Mapping

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, TWO_CARDS, preempting, running, victims
from webhook.cluster.node_info import NodeInfo

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def _term(key: str, app: str = "web") -> dict[str, object]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _affinity(kind: str, key: str, app: str = "web") -> dict[str, object]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, app)]}}


def _node(name: str, *pods: PodBuilder, capacity: Mapping[str, str] = ROOM) -> NodeInfo:
    return node(name, *pods, labels={_ZONE: "a", _HOST: name}, capacity=capacity)


def _web(name: str, priority: int = 1, cards: int = 0) -> PodBuilder:
    return running(name, priority, cards).label("app", "web")


@pytest.mark.parametrize("key", [_HOST, _ZONE])
def test_all_selected_pods_are_evicted_and_no_other(key: str) -> None:
    apart = make_pod().affinity(_affinity("podAntiAffinity", key))
    assert sorted(victims(apart, _node("n", _web("x"), running("other"), _web("y", 7)))) == ["x", "y"]


def test_pods_of_other_nodes_in_the_domain_are_not_evicted() -> None:
    apart, nodes = make_pod().affinity(_affinity("podAntiAffinity", _ZONE)), [_node(each, _web(each)) for each in "ab"]
    found = preempting(apart, *nodes)
    assert not found.evicts
    assert "2 node(s) didn't match pod anti-affinity rules" in found.message


def test_pods_that_avoid_the_pod_are_evicted() -> None:
    avoids = running("avoids", 1).affinity(_affinity("podAntiAffinity", _HOST, "new"))
    info = _node("n", avoids, running("other", 1).affinity(_affinity("podAntiAffinity", _HOST, "old")))
    assert victims(make_pod().label("app", "new"), info) == ["avoids"]


def test_a_selected_pod_that_stays_in_the_domain_is_enough() -> None:
    near = make_pod().gpu(2).affinity(_affinity("podAffinity", _ZONE))
    full = _node("full", _web("x", 1, 2), capacity=TWO_CARDS)
    assert not preempting(near, full).evicts
    assert victims(near, full, _node("other", _web("y", 200, 2), capacity=TWO_CARDS)) == ["x"]


def test_a_pod_that_selects_itself_can_be_the_first() -> None:
    near = make_pod().label("app", "web").gpu(2).affinity(_affinity("podAffinity", _ZONE))
    assert victims(near, _node("full", _web("x", 1, 2), capacity=TWO_CARDS)) == ["x"]


@pytest.mark.parametrize("key", [_HOST, _ZONE])
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_pods_that_are_attracted_or_only_prefer_distance_keep_nobody_away(kind: str, key: str) -> None:
    """Only required anti-affinity of running pods counts, here that of one that can be evicted."""
    term = {"weight": 1, "podAffinityTerm": _term(key, "new")}
    affinity = _affinity("podAffinity", key, "new") if kind == "podAffinity" else {}
    affinity |= {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    stays = running("stays", 200).affinity(affinity)
    repels = running("repels", 2).affinity(_affinity("podAntiAffinity", key, "new"))
    info = _node("n", stays, repels, running("low", 1, 2), capacity=TWO_CARDS)
    assert victims(make_pod().label("app", "new").gpu(2), info) == ["repels", "low"]
