"""SchedulingGates alone."""

import pytest

from tests.support.builders import make_pod
from tests.support.plugins import pod_info
from webhook.placement.plugins.scheduling_gates import BLOCKED, SchedulingGates


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        pytest.param([{"name": "quota"}], BLOCKED, id="a gate"),
        pytest.param([], "", id="an empty list"),
        pytest.param(None, "", id="null"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}], "", id="of Kueue"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "quota"}], BLOCKED, id="of Kueue and another"),
    ],
)
def test_a_pod_with_a_gate_does_not_enter_the_queue(gates: list[dict[str, str]] | None, reason: str) -> None:
    assert SchedulingGates().pre_enqueue(pod_info(make_pod().spec(schedulingGates=gates))) == reason
