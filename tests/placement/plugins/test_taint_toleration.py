"""TaintToleration: taints bar pods, or repel them."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, rejections, scores
from webhook.placement.plugins.taint_toleration import ERR_REASON, TaintToleration


@pytest.mark.parametrize(
    ("taints", "pod", "rejected"),
    [
        pytest.param([], make_pod(), False, id="no taint"),
        pytest.param(["use=training:NoSchedule"], make_pod(), True, id="NoSchedule"),
        pytest.param(["use=training:NoExecute"], make_pod(), True, id="NoExecute"),
        pytest.param(["use=training:PreferNoSchedule"], make_pod(), False, id="PreferNoSchedule excludes no pod"),
        pytest.param(
            ["use=training:NoSchedule"], make_pod().toleration("use", value="training"), False, id="tolerated"
        ),
        pytest.param(
            ["use=training:NoSchedule", "gpu=H20:NoSchedule"],
            make_pod().toleration("use", value="training"),
            True,
            id="every taint must be tolerated",
        ),
        pytest.param(
            ["use=training:NoSchedule", "gpu=H20:NoExecute"],
            make_pod().toleration("use", operator="Exists").toleration("gpu", operator="Exists"),
            False,
            id="by some toleration each",
        ),
        pytest.param(
            ["gpu=5:NoSchedule"],
            make_pod().toleration("gpu", operator="Gt", value="3"),
            True,
            id="Gt is an alpha operator, off by default",
        ),
    ],
)
def test_node_with_an_untolerated_taint_is_rejected(taints: list[str], pod: PodBuilder, rejected: bool) -> None:
    found = rejections(TaintToleration(), pod, node("a", taints=taints), node("b"))
    assert found == ({"a": [ERR_REASON]} if rejected else {})


_REPELLING = ["use=a:PreferNoSchedule", "use=b:PreferNoSchedule"]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), [100, 50, 0], id="the fewer the better"),
        pytest.param(make_pod().toleration("use", value="a"), [100, 100, 0], id="tolerated ones do not count"),
        pytest.param(make_pod().toleration(operator="Exists"), [100, 100, 100], id="all tolerated"),
        pytest.param(
            make_pod().toleration("use", operator="Exists", effect="NoSchedule"),
            [100, 50, 0],
            id="a toleration of another effect does not count",
        ),
    ],
)
def test_preferring_taints_lower_the_score(pod: PodBuilder, expected: list[int]) -> None:
    nodes = node("a"), node("b", taints=_REPELLING[:1]), node("c", taints=_REPELLING)
    assert scores(TaintToleration(), pod, *nodes) == expected


def test_scores_are_rounded_as_integers() -> None:
    repelling = [f"k{index}=x:PreferNoSchedule" for index in range(3)]
    nodes = [node(f"n{count}", taints=repelling[:count]) for count in range(4)]
    assert scores(TaintToleration(), make_pod(), *nodes) == [100, 67, 34, 0]
