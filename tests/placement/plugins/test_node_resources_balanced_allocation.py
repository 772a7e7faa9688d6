"""NodeResourcesBalancedAllocation: cpu and memory used alike."""

from typing import Any

import pytest

from tests.builders import PodBuilder, make_pod
from tests.placement.asking import node, pod_info, scores
from webhook.placement.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation

_PLUGIN = NodeResourcesBalancedAllocation()
_CAPACITY = {"cpu": "10", "memory": "10Gi"}


@pytest.mark.parametrize(
    ("pod", "running", "expected"),
    [
        pytest.param(make_pod().requests(cpu="1", memory="1Gi"), make_pod(), 75, id="nothing changes"),
        pytest.param(make_pod().requests(cpu="10"), make_pod(), 50, id="balance is lost"),
        pytest.param(make_pod().requests(cpu="10"), make_pod().requests(memory="10Gi"), 100, id="balance is gained"),
        pytest.param(make_pod().requests(cpu="1"), make_pod(), 72, id="a little is lost"),
        pytest.param(make_pod().requests(cpu="99"), make_pod().requests(cpu="99"), 75, id="shares are cut at one"),
    ],
)
def test_score_tells_how_the_pod_changes_the_balance(pod: PodBuilder, running: PodBuilder, expected: int) -> None:
    assert scores(_PLUGIN, pod, node("a", running, capacity=_CAPACITY)) == [expected]


@pytest.mark.parametrize("capacity", [{"cpu": "0", "memory": "1Gi"}, {"cpu": "1", "memory": "0"}])
def test_node_with_one_of_the_two_is_in_balance(capacity: dict[str, Any]) -> None:
    assert scores(_PLUGIN, make_pod().requests(cpu="1", memory="1Gi"), node("a", capacity=capacity)) == [75]


@pytest.mark.parametrize(
    ("pod", "skipped"),
    [
        pytest.param(make_pod(), True, id="no request"),
        pytest.param(make_pod().gpu(8), True, id="only cards"),
        pytest.param(make_pod().requests(cpu="0"), True, id="a request of nothing"),
        pytest.param(make_pod().requests(memory="1"), False, id="a byte"),
        pytest.param(make_pod().overhead(cpu="1m"), False, id="overhead"),
    ],
)
def test_pod_without_cpu_and_memory_is_not_scored(pod: PodBuilder, skipped: bool) -> None:
    assert _PLUGIN.skips(pod_info(pod)) is skipped
