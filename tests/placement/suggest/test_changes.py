"""Changes after which a pod may fit."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.node_info import NO_PRIORITY
from webhook.cluster.snapshot import Snapshot
from webhook.placement.suggest.changes import Free, Scenario
from webhook.placement.suggest.free_capacity import _taken_ports


def test_ports_that_are_taken_are_those_of_one_protocol_number_and_address() -> None:
    pods = (
        make_pod("a").host_port(80),
        make_pod("b").host_port(81, protocol="UDP"),
        make_pod("c").host_port(82, host_ip="10.0.0.1"),
        make_pod("d").host_port(83, host_ip="10.0.0.1"),
    )
    wanted = make_pod().host_port(80).host_port(81).host_port(82, host_ip="10.0.0.2").host_port(83).host_port(80)
    situation = Scenario(pod_info(wanted), Snapshot.of([node("n", *pods)]))
    assert [port.port for port in _taken_ports(situation, 0)] == [80, 83]


@pytest.mark.parametrize(("gone", "lowest"), [(0, -3), (1, 5), (2, NO_PRIORITY)])
def test_the_lowest_priority_of_a_node_is_that_of_the_pods_that_stay(gone: int, lowest: int) -> None:
    running = make_pod("low").spec(priority=-3), make_pod("high").spec(priority=5)
    situation = Scenario(pod_info(make_pod()), Snapshot.of([node("n", *running)]))

    changed = Free("n", pods=gone).apply(situation)

    assert changed.nodes.nodes[0].lowest_priority == lowest
