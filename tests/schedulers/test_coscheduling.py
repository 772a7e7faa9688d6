"""The real Coscheduling plugin starts gangs that are annotated with our keys alone, and the verdicts on gangs hold."""

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers.groups import (
    Gangs,
    group_is_the_size_without_one,
    larger_group_never_starts,
    smaller_group_starts_in_part,
)
from tests.schedulers.installed.coscheduling import NAME, TO_COSCHEDULING, Coscheduling
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, wait_refused, worker
from tests.support.on_cluster.registered import Webhook


@pytest.fixture(autouse=True)
def _sends_training_pods_to_it(webhook: Webhook) -> None:
    webhook.world.policy = TO_COSCHEDULING


@pytest.mark.parametrize(("gpus", "started"), [(3, 0), (4, 4)])
def test_a_gang_starts_whole_or_not_at_all(
    cluster: Cluster, coscheduling: Coscheduling, gpus: int, started: int
) -> None:
    """Cards that come later are no part of it: the plugin took more than 90 s to try again."""
    cluster.make_nodes(gpu_node("n1", gpus))
    coscheduling.make_pod_group("bert", 4)

    pods = [cluster.create(worker(f"bert-{number}", gang="bert", gang_size=4)).object for number in range(4)]

    if started:
        assert wait_bound_all(cluster, pods) == ["n1"] * started
    else:
        wait_refused(cluster, pods)
        assert bound(cluster, pods) == 0


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, coscheduling: Coscheduling) -> Gangs:
    """Coscheduling, to which training pods are sent."""
    kinds = "podgroups.scheduling.x-k8s.io"
    return Gangs("Coscheduling", NAME, cluster, webhook, kinds, coscheduling.make_pod_group)


def test_group_that_needs_fewer_pods_than_the_gang_starts_in_part(gangs: Gangs) -> None:
    smaller_group_starts_in_part(gangs)


def test_group_that_needs_more_pods_than_the_gang_never_starts(gangs: Gangs) -> None:
    larger_group_never_starts(gangs)


@pytest.mark.parametrize("cards", [3, 4])
def test_group_is_the_size_of_a_gang_without_one(gangs: Gangs, cards: int) -> None:
    group_is_the_size_without_one(gangs, cards)
