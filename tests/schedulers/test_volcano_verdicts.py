"""The verdicts on gangs, queues and jobs of Volcano, compared with what the real Volcano starts."""

from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.groups import (
    Gangs,
    gang_keeps_free_cards_for_a_pod_that_does_not_end,
    group_is_the_size_without_one,
    larger_group_never_starts,
    node_of_a_pod_that_does_not_end_is_reserved,
    said,
    smaller_group_starts_in_part,
)
from tests.schedulers.installed.volcano import Volcano, volcano_job
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, wait_one_job_whole, worker
from tests.support.on_cluster.registered import Webhook
from tests.support.on_cluster.webhooks import serving

RESERVED = "can possibly be assigned to"
KINDS = "queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh"


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, volcano: Volcano) -> Gangs:
    """Volcano, with PodGroups that are enqueued."""

    def make_group(name: str, members: int) -> None:
        volcano.make_pod_group(name, members)
        volcano.wait_enqueued(name)

    return Gangs("Volcano", "volcano", cluster, webhook, KINDS, make_group)


def test_group_that_needs_fewer_pods_than_the_gang_starts_in_part(gangs: Gangs) -> None:
    smaller_group_starts_in_part(gangs)


def test_group_that_needs_more_pods_than_the_gang_never_starts(gangs: Gangs) -> None:
    larger_group_never_starts(gangs)


@pytest.mark.parametrize("cards", [3, 4])
def test_group_is_the_size_of_a_gang_without_one(gangs: Gangs, cards: int) -> None:
    group_is_the_size_without_one(gangs, cards)


@pytest.mark.parametrize(("cards", "starts"), [(2, False), (3, False), (4, True)])
def test_capability_of_the_queue_must_hold_the_whole_gang(
    gangs: Gangs, volcano: Volcano, cards: int, starts: bool
) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    volcano.make_queue("research", capability={"nvidia.com/gpu": str(cards)})
    volcano.make_pod_group("bert", 4, "research")
    volcano.wait_enqueued("bert")

    answers = gangs.create(4, gang_size=4)

    excess = "Volcano: with the 4 pods of gang bert, queue research exceeds its capability: nvidia.com/gpu 4 of"
    assert [said(each) for each in answers] == [[] if starts else [f"{excess} {cards}"]] * 4
    if starts:
        wait_bound_all(gangs.cluster, [each.object for each in answers])
    assert gangs.bound_at_last(answers) == 4 * starts


def test_capability_is_compared_with_one_pod_that_is_in_no_gang(gangs: Gangs, volcano: Volcano) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    volcano.make_queue("research", capability={"nvidia.com/gpu": "1"})
    gangs.look()

    fits = gangs.cluster.create(worker("fits", queue="research"))
    exceeds = gangs.cluster.create(worker("exceeds", queue="research").gpu(2))

    assert said(fits) == []
    assert said(exceeds) == ["Volcano: with this pod, queue research exceeds its capability: nvidia.com/gpu 2 of 1"]
    assert gangs.cluster.wait_bound(fits.object) == "n1"
    assert gangs.bound_at_last([exceeds]) == 0


def queue_missing(_: Volcano) -> str:
    return "Volcano: queue research does not exist: the pod waits without a condition or an Event until it does"


def queue_closed(volcano: Volcano) -> str:
    volcano.make_queue("research")
    volcano.close_queue("research")
    return "Volcano: queue research is Closed: it starts no pods"


def queue_too_small(volcano: Volcano) -> str:
    volcano.make_queue("research", capability={"nvidia.com/gpu": "2"})
    return "Volcano: with the 4 pods of gang bert, queue research exceeds its capability: nvidia.com/gpu 4 of 2"


@pytest.mark.parametrize("make", [queue_missing, queue_closed, queue_too_small])
def test_queue_of_a_job_of_volcano_is_checked_when_the_job_is_applied(
    gangs: Gangs, volcano: Volcano, make: Callable[[Volcano], str]
) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    expected = make(volcano)
    gangs.look()

    answer = gangs.cluster.create(volcano_job("bert", 4, "research"))

    assert said(answer) == [expected]
    assert gangs.bound_at_last([]) == 0
    assert [each["metadata"]["name"] for each in gangs.cluster.pods()] == ["probe"]


def test_job_of_volcano_in_a_queue_with_room_has_no_warning_and_starts(gangs: Gangs, volcano: Volcano) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    volcano.make_queue("research", capability={"nvidia.com/gpu": "4"})
    gangs.look()

    answer = gangs.cluster.create(volcano_job("bert", 4, "research"))

    assert said(answer) == []
    wait_bound_all(gangs.cluster, gangs.cluster.wait_pods(4))


def waiting_pods(admin_port: int) -> int:
    """Return how many pods the webhook has seen waiting, with room or without."""
    with urlopen(f"http://127.0.0.1:{admin_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(sum(float(line.split()[-1]) for line in lines if line.startswith("placement_webhook_waiting_pods{")))


def test_of_two_interleaved_gangs_the_one_that_starts_is_not_warned(
    cluster: Cluster, volcano: Volcano, tmp_path: Path
) -> None:
    """The pods of the one that does not start reserve nothing."""
    cluster.make_nodes(gpu_node("n1", 6))
    for job in ("bert", "llama"):
        volcano.make_pod_group(job, 4)
        volcano.wait_enqueued(job)
        volcano.wait_older(job)
    names = [f"{job}-{number}" for number in range(4) for job in ("bert", "llama")]

    with serving(cluster.control_plane, tmp_path, scheduler="volcano") as webhooks:
        webhooks.register(cluster, nodes=1)
        keys = {name: {"gang": name.partition("-")[0], "gang_size": 4} for name in names}
        answers = {}
        for number, name in enumerate(names):
            # Until a pod is seen, it takes no room from others: anybody can send a review. The four of bert start.
            seen = (number, number - 4)
            wait_for(lambda: waiting_pods(webhooks.admin_ports[0]) in seen, f"pods before {name} being seen")  # noqa: B023
            answers[name] = cluster.create(worker(name, **keys[name]))

    pods = {job: [answers[f"{job}-{number}"].object for number in range(4)] for job in ("bert", "llama")}
    assert wait_one_job_whole(cluster, pods) == ("bert", "llama")
    warned = [name for name in names if said(answers[name], "placement check: Waiting")]
    assert warned == ["llama-2", "llama-3"]
    assert bound(cluster, pods["llama"]) == 0


def test_the_node_of_a_pod_that_does_not_end_is_reserved_until_another_has_room(gangs: Gangs) -> None:
    node_of_a_pod_that_does_not_end_is_reserved(gangs, RESERVED)


def test_a_gang_with_the_node_of_a_pod_that_does_not_end_keeps_free_cards(gangs: Gangs) -> None:
    gang_keeps_free_cards_for_a_pod_that_does_not_end(gangs, RESERVED)
