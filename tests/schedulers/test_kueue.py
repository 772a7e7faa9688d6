"""The real Kueue admits pods that are annotated with our keys alone, and the stock scheduler binds them."""

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers.installed.kueue import GATES, WITH_KUEUE, Kueue, gated, gates
from tests.schedulers.jobs import gpu_node, wait_bound_all, worker
from tests.support.on_cluster.registered import Webhook


@pytest.fixture(autouse=True)
def _leaves_queues_to_kueue(webhook: Webhook) -> None:
    webhook.world.policy = WITH_KUEUE


def test_a_gang_is_held_until_the_quota_has_room_for_all_of_it(cluster: Cluster, kueue: Kueue) -> None:
    cluster.make_nodes(gpu_node("n1", 8))
    kueue.make_queue("research", gpus=3)

    pods = [
        cluster.create(worker(f"bert-{number}", queue="research", gang="bert", gang_size=4)).object
        for number in range(4)
    ]

    assert gates(pods) == GATES
    assert "nvidia.com/gpu" in kueue.wait_held("bert")
    assert len(gated(cluster.pods())) == 4
    kueue.set_quota("research", gpus=4)
    assert wait_bound_all(cluster, pods) == ["n1"] * 4


def test_a_plain_pod_is_admitted_by_the_queue_that_its_annotation_names(cluster: Cluster, kueue: Kueue) -> None:
    cluster.make_nodes(gpu_node("n1", 8))
    kueue.make_queue("research", gpus=1)

    pod = cluster.create(worker("p", queue="research")).object

    assert gates([pod]) == GATES
    assert cluster.wait_bound(pod) == "n1"
