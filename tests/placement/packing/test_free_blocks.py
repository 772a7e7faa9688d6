"""The largest free block of each card in each pool."""

import numpy as np

from tests.support.admission import USAGE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.free_cards import FreeBlock, largest_free_blocks
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
H20, L40S = {PRODUCT: "NVIDIA-H20"}, {PRODUCT: "NVIDIA-L40S"}
TRAINING, HYBRID = {USAGE: "training"}, {USAGE: "hybrid"}


def _eight(name: str, labels: dict[str, str], *running: PodBuilder, unschedulable: bool = False) -> NodeInfo:
    return node(name, *running, labels=labels, capacity={GPU: "8"}, unschedulable=unschedulable)


def _blocks(*nodes: NodeInfo) -> tuple[FreeBlock, ...]:
    return largest_free_blocks(Snapshot.of(nodes), USAGE, BUILT_IN_ACCELERATORS)


def test_the_largest_block_of_each_pool_and_product_is_counted() -> None:
    found = _blocks(
        _eight("a", TRAINING | H20, make_pod().gpu(2)),
        _eight("b", TRAINING | H20, make_pod("x").gpu(1), make_pod("y").gpu(1)),
        _eight("c", TRAINING | H20, make_pod().gpu(7)),
        _eight("d", TRAINING | L40S),
        _eight("e", HYBRID | H20, make_pod().gpu(8)),
    )

    assert found == (
        FreeBlock("hybrid", GPU, "NVIDIA-H20", 0, 1),
        FreeBlock("training", GPU, "NVIDIA-H20", 6, 2),
        FreeBlock("training", GPU, "NVIDIA-L40S", 8, 1),
    )


def test_nodes_without_labels_are_in_no_pool() -> None:
    assert _blocks(_eight("a", {})) == (FreeBlock(None, GPU, None, 8, 1),)


def test_every_resource_of_an_accelerator_counts_with_the_product_of_its_card() -> None:
    capacity = {GPU: "0", "nvidia.com/mig-1g.10gb": "7", "huawei.com/Ascend910": "4", "example.com/nic": "2"}
    labels = TRAINING | H20 | {"huawei.com/npu.product": "Ascend910B"}

    assert _blocks(node("a", labels=labels, capacity=capacity)) == (
        FreeBlock("training", "huawei.com/Ascend910", "Ascend910B", 4, 1),
        FreeBlock("training", "nvidia.com/mig-1g.10gb", "NVIDIA-H20", 7, 1),
    )


def test_a_node_that_takes_no_pod_has_nothing_free() -> None:
    cordoned = _eight("a", TRAINING | H20, unschedulable=True)
    full = node("b", make_pod(), labels=TRAINING | H20, capacity={GPU: "8", "pods": "1"})

    assert _blocks(cordoned, full) == (FreeBlock("training", GPU, "NVIDIA-H20", 0, 2),)


def test_more_requests_than_cards_leave_nothing_free() -> None:
    assert _blocks(_eight("a", TRAINING | H20, make_pod().gpu(9))) == (FreeBlock("training", GPU, "NVIDIA-H20", 0, 1),)


def test_the_snapshot_is_unchanged() -> None:
    snapshot = Snapshot.of([_eight("a", TRAINING | H20, unschedulable=True)])

    largest_free_blocks(snapshot, USAGE, BUILT_IN_ACCELERATORS)

    assert np.array_equal(snapshot.allocatable(GPU), [8])
    assert np.array_equal(snapshot.requested(GPU), [0])
