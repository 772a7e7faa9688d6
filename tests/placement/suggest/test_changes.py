"""Changes after which a pod may fit."""

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.snapshot import Snapshot
from webhook.placement.suggest.changes import Scenario
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
