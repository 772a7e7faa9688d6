"""The real Volcano places pods and jobs that are annotated with our keys alone."""

from tests.controlplane.cluster import Cluster
from tests.schedulers.installed.volcano import Volcano, volcano_job
from tests.schedulers.jobs import (
    bound,
    create_interleaved,
    gpu_node,
    wait_bound_all,
    wait_one_job_whole,
    wait_refused,
    worker,
)
from tests.support.on_cluster.registered import Webhook


def test_a_plain_pod_lands_in_the_queue_that_its_annotation_names(
    cluster: Cluster, webhook: Webhook, volcano: Volcano
) -> None:
    cluster.make_nodes(gpu_node("n1", 1))
    volcano.make_queue("research")

    pod = cluster.create(worker("p", queue="research")).object

    assert cluster.wait_bound(pod) == "n1"
    assert volcano.pod_group_of(pod)["spec"]["queue"] == "research"


def test_a_pod_without_a_queue_lands_in_the_default_queue(cluster: Cluster, webhook: Webhook, volcano: Volcano) -> None:
    cluster.make_nodes(gpu_node("n1", 1))

    pod = cluster.create(worker("p")).object

    assert cluster.wait_bound(pod) == "n1"
    assert volcano.pod_group_of(pod)["spec"]["queue"] == "default"


def test_a_gang_starts_whole_or_not_at_all(cluster: Cluster, webhook: Webhook, volcano: Volcano) -> None:
    cluster.make_nodes(gpu_node("n1", 3))
    volcano.make_queue("research")
    volcano.make_pod_group("bert", 4, "research")

    pods = [cluster.create(worker(f"bert-{number}", gang="bert", gang_size=4)).object for number in range(4)]

    wait_refused(cluster, pods)
    assert bound(cluster, pods) == 0
    assert {volcano.pod_group_of(pod)["spec"]["queue"] for pod in pods} == {"research"}
    cluster.make_nodes(gpu_node("n2", 1))
    assert sorted(wait_bound_all(cluster, pods)) == ["n1", "n1", "n1", "n2"]


def test_of_two_jobs_that_would_deadlock_one_starts_whole_and_the_other_not_at_all(
    cluster: Cluster, webhook: Webhook, volcano: Volcano
) -> None:
    """tests/acceptance/placing/test_deadlock.py shows the same jobs with the stock scheduler."""
    cluster.make_nodes(gpu_node("n1", 4), gpu_node("n2", 2))
    for job in ("bert", "llama"):
        volcano.make_pod_group(job, 4)

    jobs = create_interleaved(cluster, 4, "bert", "llama")

    _, waiting = wait_one_job_whole(cluster, jobs)
    wait_refused(cluster, jobs[waiting])
    assert bound(cluster, jobs[waiting]) == 0


def test_a_job_of_volcano_starts_whole_in_its_queue_or_not_at_all(
    cluster: Cluster, webhook: Webhook, volcano: Volcano
) -> None:
    cluster.make_nodes(gpu_node("n1", 3))
    volcano.make_queue("research")

    cluster.create(volcano_job("bert", 4, "research"))

    group = volcano.wait_group_is_held("bert")
    assert (group["spec"]["queue"], group["spec"]["minMember"]) == ("research", 4)
    assert cluster.pods() == []
    cluster.make_nodes(gpu_node("n2", 1))
    assert sorted(wait_bound_all(cluster, cluster.wait_pods(4))) == ["n1", "n1", "n1", "n2"]


def test_the_queue_of_a_job_of_volcano_is_its_own_and_not_that_of_its_pods(
    cluster: Cluster, webhook: Webhook, volcano: Volcano
) -> None:
    cluster.make_nodes(gpu_node("n1", 1))
    volcano.make_queue("research")

    cluster.create(volcano_job("bert", 1, "default", queue="research"))

    (pod,) = cluster.wait_pods(1)
    assert cluster.wait_bound(pod) == "n1"
    assert pod["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "research"
    assert volcano.pod_group_of(pod)["spec"]["queue"] == "default"
