"""Two jobs that start in part and hold each other's cards: the deadlock that gang scheduling prevents.

The stock kube-scheduler shows it here; tests/schedulers shows that Volcano and KAI start one of the jobs whole.
"""

from collections import Counter

from tests.acceptance.conftest import Webhook
from tests.acceptance.pools import pool_node, training_pod
from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN

WORKERS = 4


def create_interleaved(cluster: Cluster, *jobs: str) -> list[Object]:
    """Return the pods of jobs in the order in which controllers that work at the same time create them."""
    return [
        cluster.create(
            training_pod(f"{job}-{number}")
            .label("job-name", job)
            .annotate(f"{DOMAIN}/scheduler", "default-scheduler")
            .annotate(f"{DOMAIN}/gang", job)
            .annotate(f"{DOMAIN}/gang-size", str(WORKERS))
        ).object
        for number in range(WORKERS)
        for job in jobs
    ]


def test_the_stock_scheduler_starts_two_jobs_in_part_and_neither_whole(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(pool_node("train-1", "training", gpus=4), pool_node("train-2", "training", gpus=2))

    pods = create_interleaved(cluster, "bert", "llama")

    placed, waiting = pods[:6], pods[6:]
    assert {cluster.wait_bound(pod) for pod in placed} == {"train-1", "train-2"}
    started = Counter(pod["metadata"]["labels"]["job-name"] for pod in placed)
    assert started == {"bert": 3, "llama": 3}
    for pod in waiting:
        assert "2 Insufficient nvidia.com/gpu" in cluster.wait_unschedulable(pod)
