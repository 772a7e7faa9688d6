"""A gang that an empty cluster could hold waits; one that it could not is infeasible."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.placement.gang.gangs import HOST, WORKER, affinity, asked, counted, gpus, on, spread
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.storage import uses
from webhook.kube.deadline import never
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS
from webhook.placement.framework.result import Placement, PlacementVerdict
from webhook.placement.gang.empty_cluster import within_cluster
from webhook.placement.profiles.node_templates import TemplateNode
from webhook.placement.scheduler import PodSignature, Scheduler

TAKEN = make_pod("other").gpu(3)
TAKEN_CARD = make_pod("other").gpu(1)
TEMPLATE = {"name": "h20", "capacity": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "8"}}


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


APART = WORKER.affinity(affinity("podAntiAffinity", HOST))
WAITING = Placement("Waiting", None, 2, 0, "0/2 nodes are available.")


def within(
    asked_for: int,
    pod: PodBuilder = APART,
    *,
    kind: str = "Deployment",
    verdict: PlacementVerdict = "Waiting",
    **spec: Any,
) -> Placement:
    """Return the placement of the first of so many replicas that does not fit, in a cluster for two."""
    base = on(gpus("a", 1, TAKEN_CARD), gpus("b", 1)).base
    of_kind = next(each for each in BUILT_IN_KINDS if each.kind == kind)
    signature = PodSignature.of(pod.obj())
    placement = replace(WAITING, verdict=verdict)
    return within_cluster(placement, signature, asked_for, of_kind, policy_with(**spec), Scheduler(), base, never)


@pytest.mark.parametrize(("asked_for", "verdict"), [(1, "Waiting"), (2, "Waiting"), (3, "Infeasible")])
def test_more_replicas_that_exclude_each_other_than_an_empty_cluster_holds_never_fit(
    asked_for: int, verdict: str
) -> None:
    placement = within(asked_for)

    never_fit = f" No more than 2 of the {asked_for} replicas would fit on an empty cluster."
    assert placement.verdict == verdict
    assert placement.message == WAITING.message + (never_fit if verdict == "Infeasible" else "")


@pytest.mark.parametrize(
    "placement",
    [
        pytest.param(lambda: within(3, kind="Job"), id="pods of a Job can run one after the other"),
        pytest.param(lambda: within(3, WORKER), id="the pods do not exclude each other"),
        pytest.param(lambda: within(3, verdict="Unknown"), id="it is not known why they wait"),
        pytest.param(lambda: within(3, nodeTemplates=[TEMPLATE]), id="new nodes can take them"),
        pytest.param(lambda: within(3, APART.spec(schedulingGates=[{"name": "x"}])), id="a gate can wait for nodes"),
        pytest.param(lambda: within(3, APART.spec(volumes=uses("data"))), id="claims can be created"),
    ],
)
def test_replicas_that_may_fit_later_wait(placement: Callable[[], Placement]) -> None:
    assert placement().verdict != "Infeasible"


@pytest.mark.parametrize(("ports", "verdict"), [((80,), "Infeasible"), ((), "Waiting")])
def test_replicas_with_a_host_port_exclude_each_other(ports: tuple[int, ...], verdict: str) -> None:
    pod = WORKER
    for each in ports:
        pod = pod.host_port(each)

    assert within(3, pod).verdict == verdict
