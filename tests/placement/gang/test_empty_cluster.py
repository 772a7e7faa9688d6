"""A gang that an empty cluster could hold waits; one that it could not is infeasible."""

import pytest

from tests.placement.gang.gangs import WORKER, asked, counted, gpus, on, spread
from tests.support.objects.builders import make_pod
from webhook.placement.profiles.node_templates import TemplateNode

TAKEN = make_pod("other").gpu(3)
TAKEN_CARD = make_pod("other").gpu(1)


@pytest.mark.parametrize(
    ("size", "verdict", "fit"),
    [(1, "Feasible", None), (5, "Feasible", 5), (6, "Waiting", 5), (8, "Waiting", 5), (9, "Infeasible", 5)],
)
def test_gang_waits_for_what_runs_and_never_for_more_than_the_cluster_has(
    size: int, verdict: str, fit: int | None
) -> None:
    placement = asked(WORKER, size, on(gpus("a", 4), gpus("b", 4, TAKEN)))

    assert (placement.verdict, placement.gang and placement.gang.fit) == (verdict, fit)


def test_new_nodes_of_an_autoscaler_are_waited_for() -> None:
    template = TemplateNode("h20", gpus("<h20>", 8))

    placement = asked(WORKER, 8, on(gpus("a", 4)), templates=(template,))

    assert placement.verdict == "Waiting"
    assert "Node template h20 could take it." in placement.message


def test_spread_by_an_empty_selector_counts_no_pods_and_bounds_nothing() -> None:
    pod = WORKER.spec(topologySpreadConstraints=[spread("zone") | {"labelSelector": {}}])
    nodes = [gpus("a", 4, zone="x"), gpus("b", 1, TAKEN_CARD, zone="y")]

    assert counted(asked(pod, 5, on(*nodes))) == ("Waiting", 4, 0)
