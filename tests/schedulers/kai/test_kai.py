"""The real KAI places pods that are annotated with our keys alone."""

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import webhook_configuration
from tests.schedulers.installed.kai import TO_KAI, Kai
from tests.schedulers.jobs import (
    bound,
    create_interleaved,
    gpu_node,
    wait_bound_all,
    wait_one_job_whole,
    wait_refused,
    worker,
)
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.on_cluster.registered import Webhook


@pytest.fixture(autouse=True)
def _sends_training_pods_to_kai(webhook: Webhook) -> None:
    webhook.world.policy = TO_KAI


def shared_card(name: str) -> PodBuilder:
    """Return a pod that asks for half a card by our annotation alone."""
    return make_pod(name).annotate(TYPE, "training").annotate(f"{DOMAIN}/gpu-fraction", "0.5").requests(cpu="1")


def register(cluster: Cluster, name: str, fields: Object) -> None:
    cluster.client.create(webhook_configuration(name, "", "", fields))
    cluster.settle_webhooks()


def environment(pod: Object) -> set[str]:
    return {each["name"] for each in pod["spec"]["containers"][0].get("env", [])}


def test_a_plain_pod_lands_in_the_queue_that_its_annotation_names(cluster: Cluster, kai: Kai) -> None:
    cluster.make_nodes(gpu_node("n1", 1))
    kai.make_queue("research")

    pod = cluster.create(worker("p", queue="research")).object

    assert cluster.wait_bound(pod) == "n1"
    assert kai.pod_group_of(pod)["spec"]["queue"] == "research"


def test_a_gang_starts_whole_or_not_at_all(cluster: Cluster, kai: Kai) -> None:
    cluster.make_nodes(gpu_node("n1", 3))
    kai.make_queue("research")
    kai.make_pod_group("bert", 4, "research")

    pods = [
        cluster.create(worker(f"bert-{number}", queue="research", gang="bert", gang_size=4)).object
        for number in range(4)
    ]

    kai.wait_refused("bert")
    assert bound(cluster, pods) == 0
    cluster.make_nodes(gpu_node("n2", 1))
    assert sorted(wait_bound_all(cluster, pods)) == ["n1", "n1", "n1", "n2"]


def test_the_admission_of_kai_is_called_for_the_scheduler_that_the_webhook_sets(
    cluster: Cluster, kai_admission: Object
) -> None:
    """It adds the devices of a shared card. Its name sorts after that of the webhook."""
    register(cluster, "mutating-kai-admission", kai_admission)

    pod = cluster.create(shared_card("half")).object

    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert "NVIDIA_VISIBLE_DEVICES" in environment(pod)


def test_the_admission_of_kai_is_not_called_if_its_name_sorts_first(cluster: Cluster, kai_admission: Object) -> None:
    """So the name of the webhook's own configuration must sort before all that look at the scheduler."""
    register(cluster, "00-mutating-kai-admission", kai_admission)

    pod = cluster.create(shared_card("half")).object

    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert environment(pod) == set()


def test_pods_with_half_a_card_share_one(cluster: Cluster, kai: Kai, kai_admission: Object) -> None:
    register(cluster, "mutating-kai-admission", kai_admission)
    cluster.make_nodes(gpu_node("n1", 1))
    kai.make_queue("research")
    halves = [shared_card(name).annotate(f"{DOMAIN}/queue", "research") for name in ("first", "second", "third")]

    fitting = [cluster.create(half).object for half in halves[:2]]

    def run() -> bool:
        kai.allocate_reserved_cards()
        return bound(cluster, fitting) == len(fitting)

    wait_for(run, "two pods on the card")

    (refusal,) = wait_refused(cluster, [cluster.create(halves[2]).object])
    assert "GPUs" in refusal


def test_of_two_jobs_that_would_deadlock_one_starts_whole_and_the_other_not_at_all(cluster: Cluster, kai: Kai) -> None:
    """tests/acceptance/placing/test_deadlock.py shows the same jobs with the stock scheduler."""
    cluster.make_nodes(gpu_node("n1", 4), gpu_node("n2", 2))
    kai.make_queue("research")
    for job in ("bert", "llama"):
        kai.make_pod_group(job, 4, "research")

    jobs = create_interleaved(cluster, 4, "bert", "llama")

    _, waiting = wait_one_job_whole(cluster, jobs)
    kai.wait_refused(waiting)
    assert bound(cluster, jobs[waiting]) == 0
