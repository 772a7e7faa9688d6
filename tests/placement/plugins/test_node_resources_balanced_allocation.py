"""NodeResourcesBalancedAllocation: cpu and memory used alike."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import is_scored, node, scores
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
    ("pod", "scored"),
    [
        pytest.param(make_pod(), False, id="no request"),
        pytest.param(make_pod().gpu(8), False, id="only cards"),
        pytest.param(make_pod().requests(cpu="0"), False, id="a request of nothing"),
        pytest.param(make_pod().requests(memory="1"), True, id="a byte"),
        pytest.param(make_pod().overhead(cpu="1m"), True, id="overhead"),
    ],
)
def test_pod_without_cpu_and_memory_is_not_scored(pod: PodBuilder, scored: bool) -> None:
    assert is_scored(_PLUGIN, pod) is scored


def test_resources_of_the_profile_are_balanced() -> None:
    plugin = NodeResourcesBalancedAllocation(("cpu", "memory", "nvidia.com/gpu"))
    large = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": 8}
    pod = make_pod().requests(cpu="4", memory="4Gi").gpu(4)
    uneven = make_pod().requests(cpu="8").gpu(0)
    # Shares of a half each deviate by nothing; 1, 0 and (not requested, so left out) by a half.
    assert scores(plugin, pod, node("a", capacity=large)) == [75]
    assert scores(plugin, uneven, node("a", capacity=large)) == [50]
    # 1, 0, 0: the mean is a third, the deviation 0.471.
    assert scores(
        plugin, make_pod().requests(cpu="8").gpu(1), node("a", capacity=large | {"nvidia.com/gpu": 10**9})
    ) == [51]


def test_pod_that_requests_none_of_the_profiles_resources_is_not_balanced() -> None:
    plugin = NodeResourcesBalancedAllocation(("nvidia.com/gpu",))
    assert not is_scored(plugin, make_pod().requests(cpu="1"))
    assert is_scored(plugin, make_pod().gpu(1))
