"""The verdicts on gangs of the Coscheduling plugin, compared with what the real plugin starts."""

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers.groups import (
    Gangs,
    group_is_the_size_without_one,
    larger_group_never_starts,
    smaller_group_starts_in_part,
)
from tests.schedulers.installed.coscheduling import NAME, TO_COSCHEDULING, Coscheduling
from tests.support.on_cluster.registered import Webhook


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, coscheduling: Coscheduling) -> Gangs:
    """Coscheduling, to which training pods are sent."""
    webhook.world.policy = TO_COSCHEDULING
    kinds = "podgroups.scheduling.x-k8s.io"
    return Gangs("Coscheduling", NAME, cluster, webhook, kinds, coscheduling.make_pod_group)


def test_group_that_needs_fewer_pods_than_the_gang_starts_in_part(gangs: Gangs) -> None:
    smaller_group_starts_in_part(gangs)


def test_group_that_needs_more_pods_than_the_gang_never_starts(gangs: Gangs) -> None:
    larger_group_never_starts(gangs)


@pytest.mark.parametrize("cards", [3, 4])
def test_group_is_the_size_of_a_gang_without_one(gangs: Gangs, cards: int) -> None:
    group_is_the_size_without_one(gangs, cards)
