"""A pod with a scheduling gate waits, beside nodes that could take it."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.result import GATED
from webhook.placement.scheduler import Scheduler


@pytest.mark.parametrize(
    ("gates", "is_gated"),
    [
        pytest.param([{"name": "quota"}], True, id="a gate"),
        pytest.param([], False, id="an empty list"),
        pytest.param(None, False, id="null"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}], False, id="of Kueue"),
        pytest.param([{"name": "kueue.x-k8s.io/admission"}, {"name": "quota"}], True, id="of Kueue and another"),
    ],
)
def test_a_pod_with_a_gate_does_not_enter_the_queue(gates: list[dict[str, str]] | None, is_gated: bool) -> None:
    placement = Scheduler().place(make_pod().spec(schedulingGates=gates).obj(), Snapshot.of([node("a")]))
    assert placement.verdict == ("Waiting" if is_gated else "Feasible")
    assert placement.message.startswith(GATED) is is_gated
