"""NodePorts: a host port is taken once."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, rejections
from webhook.placement.plugins.node_ports import ERR_REASON, NodePorts


@pytest.mark.parametrize(
    ("pod", "rejected"),
    [
        pytest.param(make_pod(), False, id="no port"),
        pytest.param(make_pod().host_port(80), True, id="taken"),
        pytest.param(make_pod().host_port(81), False, id="another port"),
        pytest.param(make_pod().host_port(80, protocol="UDP"), False, id="another protocol"),
        pytest.param(make_pod().host_port(80, host_ip="10.0.0.1"), True, id="of the same address"),
        pytest.param(make_pod().host_port(80, host_ip="10.0.0.2"), False, id="of another address"),
        pytest.param(make_pod().host_port(81).host_port(80), True, id="one of two"),
    ],
)
def test_node_where_the_port_is_taken_is_rejected(pod: PodBuilder, rejected: bool) -> None:
    taken = make_pod().host_port(80, host_ip="10.0.0.1")
    found = rejections(NodePorts(), pod, node("a", taken), node("b", make_pod().host_port(443)))
    assert found == ({"a": [ERR_REASON]} if rejected else {})
