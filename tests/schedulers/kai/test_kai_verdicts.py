"""The verdicts on gangs and queues of KAI, compared with what the real KAI starts."""

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers.groups import (
    Gangs,
    gang_keeps_free_cards_for_a_pod_that_does_not_end,
    group_is_the_size_without_one,
    larger_group_never_starts,
    node_of_a_pod_that_does_not_end_is_reserved,
    said,
    smaller_group_starts_in_part,
)
from tests.schedulers.installed.kai import TO_KAI, Kai
from tests.schedulers.jobs import gpu_node, wait_bound_all
from tests.support.on_cluster.registered import Webhook
from webhook.kube.names import HOSTNAME_LABEL

RESERVED = "was pipelined to node"
KINDS = "queues.scheduling.run.ai,podgroups.scheduling.run.ai,topologies.kai.scheduler"


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, kai: Kai) -> Gangs:
    """KAI, to which training pods are sent, with PodGroups in the queue `research`, and a queue for other pods."""
    webhook.world.policy = TO_KAI
    kai.make_queue("others")
    keys = (("queue", "others"),)

    def make_group(name: str, members: int) -> None:
        kai.make_queue("research")
        kai.make_pod_group(name, members, "research")

    return Gangs("KAI", "kai-scheduler", cluster, webhook, KINDS, make_group, keys)


def test_group_that_needs_fewer_pods_than_the_gang_starts_in_part(gangs: Gangs) -> None:
    smaller_group_starts_in_part(gangs)


def test_group_that_needs_more_pods_than_the_gang_never_starts(gangs: Gangs) -> None:
    larger_group_never_starts(gangs)


@pytest.mark.parametrize("cards", [3, 4])
def test_group_is_the_size_of_a_gang_without_one(gangs: Gangs, cards: int) -> None:
    group_is_the_size_without_one(gangs, cards)


@pytest.mark.parametrize(("own", "parents", "starts"), [(2, 8, False), (8, 3, False), (4, 4, True)])
def test_limits_of_the_queue_and_its_parent_must_hold_the_whole_gang(
    gangs: Gangs, kai: Kai, own: int, parents: int, starts: bool
) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    kai.make_queue("research", limit=own, parents_limit=parents)
    kai.make_pod_group("bert", 4, "research")

    answers = gangs.create(4, gang_size=4)

    queue = "research" if own < 4 else "research-parent"
    over = f"KAI: OverLimit: with the 4 pods of gang bert, queue {queue} exceeds its limit: nvidia.com/gpu 4 of"
    assert [said(each) for each in answers] == [[] if starts else [f"{over} {min(own, parents)}"]] * 4
    if starts:
        wait_bound_all(gangs.cluster, [each.object for each in answers])
    assert gangs.bound_at_last(answers) == 4 * starts


RACK, ZONE = "example.com/rack", "example.com/zone"


@pytest.mark.parametrize(("pods", "starts"), [(4, True), (5, False)])
def test_gang_that_no_rack_holds_is_not_started(gangs: Gangs, kai: Kai, pods: int, starts: bool) -> None:
    """Both zones have a rack of the same name, so these are two racks: with room for four pods, and for two.

    A node without the label of the lowest level is in none of them.
    """
    for name, zone, cards in (("n1", "east", 3), ("n2", "east", 1), ("n3", "west", 2), ("unnamed", "east", 8)):
        node = gpu_node(name, cards)
        node["metadata"]["labels"] |= {RACK: "1", ZONE: zone}
        if name == "unnamed":
            del node["metadata"]["labels"][HOSTNAME_LABEL]
        gangs.cluster.make_nodes(node)
    kai.make_topology("racks", ZONE, RACK, HOSTNAME_LABEL)
    kai.make_queue("research")
    topology = {"topology": "racks", "requiredTopologyLevel": RACK}
    kai.make_pod_group("bert", pods, "research", topologyConstraint=topology)

    answers = gangs.create(pods, gang_size=pods)

    if starts:
        assert [said(each) for each in answers] == [[]] * pods
        assert {*wait_bound_all(gangs.cluster, [each.object for each in answers])} == {"n1", "n2"}
        return
    for each in answers:
        assert f"no domain of {RACK} could hold 5 pods: east/1 would hold 4 if it were empty" in said(each)[0]
    assert gangs.bound_at_last(answers) == 0


def test_the_node_of_a_pod_that_does_not_end_is_reserved_until_another_has_room(gangs: Gangs) -> None:
    node_of_a_pod_that_does_not_end_is_reserved(gangs, RESERVED)


def test_a_gang_with_the_node_of_a_pod_that_does_not_end_keeps_free_cards(gangs: Gangs) -> None:
    gang_keeps_free_cards_for_a_pod_that_does_not_end(gangs, RESERVED, queue="research")
