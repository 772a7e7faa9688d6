"""The real Kueue admits pods that are annotated with our keys alone, and the stock scheduler binds them."""

import pytest

from tests.controlplane.client import Object, Objects
from tests.controlplane.cluster import Cluster
from tests.schedulers.jobs import gpu_node, wait_bound_all, worker
from tests.schedulers.kueue import Kueue
from tests.support.admission import policy_with
from tests.support.registered import Webhook

WITH_KUEUE = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}, queueing="kueue")


@pytest.fixture(autouse=True)
def _leaves_queues_to_kueue(webhook: Webhook) -> None:
    webhook.world.policy = WITH_KUEUE


GATES = {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}


def gates(pods: Objects) -> set[str]:
    return {gate["name"] for pod in pods for gate in pod["spec"].get("schedulingGates", [])}


def gated(pods: Objects) -> list[Object]:
    return [pod for pod in pods if pod["spec"].get("schedulingGates")]


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
