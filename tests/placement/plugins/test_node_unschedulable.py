"""NodeUnschedulable: cordoned nodes."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, rejections
from webhook.placement.plugins.node_unschedulable import ERR_REASON, NodeUnschedulable

_KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("pod", "rejected"),
    [
        pytest.param(make_pod(), True, id="no toleration"),
        pytest.param(make_pod().toleration(_KEY, operator="Exists", effect="NoSchedule"), False, id="tolerated"),
        pytest.param(make_pod().toleration(operator="Exists"), False, id="everything is tolerated"),
        pytest.param(make_pod().toleration(_KEY, operator="Exists", effect="NoExecute"), True, id="another effect"),
    ],
)
def test_cordoned_node_is_rejected_unless_tolerated(pod: PodBuilder, rejected: bool) -> None:
    found = rejections(NodeUnschedulable(), pod, node("cordoned", unschedulable=True), node("open"))
    assert found == ({"cordoned": [ERR_REASON]} if rejected else {})
