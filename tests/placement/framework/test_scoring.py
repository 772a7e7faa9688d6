"""The score step: weighted sums over the plugins."""

import pytest

from tests.placement.ranking.small_clusters import place
from tests.support.objects.builders import make_pod, match_expressions
from tests.support.plugins import node

_SMALL = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "3"}


def test_scores_are_weighted_and_summed() -> None:
    pod = make_pod().requests(cpu="1", memory="2Gi").prefer_node(1, match_expressions(("use", "In", ["training"])))
    placement = place(
        pod,
        node("a", capacity=_SMALL),
        node("b", capacity=_SMALL, labels={"use": "training"}, taints=["use=x:PreferNoSchedule"]),
        node("c"),
    )
    assert placement.node == "c"
    assert dict(placement.scores) == {
        "a": {
            "total": 450,
            "TaintToleration": 300,
            "NodeAffinity": 0,
            "NodeResourcesFit": 75,
            "NodeResourcesBalancedAllocation": 75,
            "ImageLocality": 0,
            "DynamicResources": 0,
            "VolumeBinding": 0,
        },
        "b": {
            "total": 350,
            "TaintToleration": 0,
            "NodeAffinity": 200,
            "NodeResourcesFit": 75,
            "NodeResourcesBalancedAllocation": 75,
            "ImageLocality": 0,
            "DynamicResources": 0,
            "VolumeBinding": 0,
        },
        "c": {
            "total": 472,
            "TaintToleration": 300,
            "NodeAffinity": 0,
            "NodeResourcesFit": 98,
            "NodeResourcesBalancedAllocation": 74,
            "ImageLocality": 0,
            "DynamicResources": 0,
            "VolumeBinding": 0,
        },
    }


def test_nodes_that_are_not_feasible_have_no_scores() -> None:
    scores = place(make_pod().gpu(1), node("a", capacity=_SMALL), node("b"), node("c", capacity=_SMALL)).scores
    assert list(scores) == ["a", "c"]
    for name in ("b", "nowhere"):
        with pytest.raises(KeyError):
            scores[name]


def test_plugins_that_skip_the_pod_are_absent_from_the_scores() -> None:
    scores = place(make_pod(), node("a"), node("b")).scores
    always = {"TaintToleration", "NodeResourcesFit", "ImageLocality", "DynamicResources", "VolumeBinding"}
    assert set(scores["a"]) == {"total", *always}
