"""The mix of typical pods."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.typical_pods import RunningMix, TypicalPod, default_mix, expected_mix

_GPU = "nvidia.com/gpu"
_GIB = 2**30


def pod(cpu: int, memory: str, gpus: int) -> PodBuilder:
    return make_pod().requests(cpu=cpu, memory=memory).gpu(gpus)


def running_mix() -> RunningMix:
    return RunningMix(lambda resource: resource in (_GPU, "amd.com/gpu"))


def test_running_pods_with_equal_requests_are_one_kind() -> None:
    nodes = (node("a", pod(4, "8Gi", 1), pod(4, "8Gi", 1)), node("b", pod(4, "8Gi", 1), pod(64, "1Ti", 8)))

    assert running_mix().of(nodes) == {
        _GPU: {TypicalPod(4000, 8 * _GIB, 1): 3, TypicalPod(64000, 1024 * _GIB, 8): 1},
    }


def test_each_resource_has_a_mix_of_its_own_and_pods_without_cards_have_none() -> None:
    nodes = (node("a", make_pod().requests(cpu=1), make_pod().gpu(1, "amd.com/gpu"), make_pod().gpu(1, "x.org/nic")),)

    assert running_mix().of(nodes) == {"amd.com/gpu": {TypicalPod(0, 0, 1): 1}}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((), id="no nodes"),
        pytest.param((node("a"), node("b")), id="all pods have ended"),
        pytest.param((node("a", pod(1, "1Gi", 2)), node("b", pod(2, "1Gi", 1))), id="other pods"),
        pytest.param((node("b", pod(2, "1Gi", 1)), node("c", pod(1, "1Gi", 1))), id="other nodes"),
        pytest.param((node("a"), node("b", pod(2, "1Gi", 1)), node("c", pod(1, "1Gi", 1))), id="one more node"),
    ],
)
def test_mix_of_later_nodes_equals_that_of_a_new_count(later: tuple[NodeInfo, ...]) -> None:
    followed = running_mix()
    first = (node("a", pod(1, "1Gi", 1), pod(1, "1Gi", 1)), node("b", pod(2, "1Gi", 1)))
    before = followed.of(first)

    assert followed.of(later) == running_mix().of(later)
    assert followed.of(first) == before == running_mix().of(first)


def test_default_mix_requests_half_of_the_resources_of_its_cards() -> None:
    nodes = [node(name, capacity={"cpu": 64, "memory": "512Gi", _GPU: 8}) for name in "abc"]
    small = node("d", capacity={"cpu": 8, "memory": "16Gi", _GPU: 2})

    assert default_mix(Snapshot.of([*nodes, small, node("no-cards")]), _GPU) == {
        TypicalPod(4000, 32 * _GIB, 1): 1,
        TypicalPod(8000, 64 * _GIB, 2): 1 / 2,
        TypicalPod(16000, 128 * _GIB, 4): 1 / 4,
        TypicalPod(32000, 256 * _GIB, 8): 1 / 8,
    }


def test_default_mix_of_a_resource_that_no_node_has_is_empty() -> None:
    assert default_mix(Snapshot.of([node("a")]), _GPU) == {}


def test_default_pods_count_beside_the_running_ones() -> None:
    small, large = TypicalPod(4000, _GIB, 1), TypicalPod(32000, 8 * _GIB, 8)

    assert expected_mix({small: 10}, {small: 1, large: 1 / 8}) == {small: 14, large: 1 / 2}
