"""Two jobs that start in part and hold each other's cards: the deadlock that gang scheduling prevents.

The stock kube-scheduler shows it here, and the webhook, which follows the cluster, predicts it; tests/schedulers shows
that Volcano and KAI start one of the jobs whole.
"""

from collections import Counter
from pathlib import Path

from tests.acceptance.placing.pools import pool_node, training_pod
from tests.controlplane.client import Answer
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN
from tests.support.on_cluster.webhooks import serving

WORKERS = 4


def create_interleaved(cluster: Cluster, *jobs: str) -> list[Answer]:
    """Return the answers to the pods of jobs, created in the order of controllers that work at the same time."""
    return [
        cluster.create(
            training_pod(f"{job}-{number}")
            .label("job-name", job)
            .annotate(f"{DOMAIN}/scheduler", "default-scheduler")
            .annotate(f"{DOMAIN}/gang", job)
            .annotate(f"{DOMAIN}/gang-size", str(WORKERS))
        )
        for number in range(WORKERS)
        for job in jobs
    ]


def partial_starts(answer: Answer) -> list[str]:
    """Return the warnings about a gang that starts in part, up to what that leads to."""
    return [each.partition(" while ")[0] for each in answer.warnings if "two such gangs can deadlock" in each]


def test_the_stock_scheduler_starts_two_jobs_in_part_and_the_webhook_predicts_it_of_both(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.make_nodes(pool_node("train-1", "training", gpus=4), pool_node("train-2", "training", gpus=2))
    with serving(cluster.control_plane, tmp_path) as webhooks:
        webhooks.register(cluster, nodes=2)
        answers = create_interleaved(cluster, "bert", "llama")

    pods = [answer.object for answer in answers]
    placed, waiting = pods[:6], pods[6:]
    assert {cluster.wait_bound(pod) for pod in placed} == {"train-1", "train-2"}
    started = Counter(pod["metadata"]["labels"]["job-name"] for pod in placed)
    assert started == {"bert": 3, "llama": 3}
    for pod in waiting:
        assert "2 Insufficient nvidia.com/gpu" in cluster.wait_unschedulable(pod)
    # Until the sixth pod, each gang still has room for the pods that it lacks.
    predicted = "3 of the 4 pods of gang {} would start and hold what they request".format
    assert [partial_starts(answer) for answer in answers] == [
        *[[]] * 5,
        [predicted("llama")],
        [predicted("bert")],
        [predicted("llama")],
    ]
