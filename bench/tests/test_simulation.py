"""The short form of `make bench-simulate`: the choices of the real kube-scheduler are among those of the simulation."""

import pytest

from bench.simulation.following import created, followed
from bench.simulation.preempted import compared, paced, really, with_classes
from bench.simulation.real import SCHEDULERS, bound, start_scheduler
from placement_planner.simulation.arrival import Load
from placement_planner.simulation.sweep import Run
from tests.controlplane.cluster import Cluster
from tests.support.programs.traces import experiment, gpu_nodes, lines

_KINDS = ("cpu=8;nvidia.com/gpu=1", "cpu=8;nvidia.com/gpu=2", "cpu=16;nvidia.com/gpu=4", "cpu=32;nvidia.com/gpu=8")
_TRACE = lines(
    *(f"0,,{kind},workload-type=training" for number in range(6) for kind in _KINDS),
    header="arrival,duration,requests,annotations",
)


@pytest.mark.parametrize("profile", [*SCHEDULERS])
def test_the_choices_of_kube_scheduler_are_among_the_best_nodes(cluster: Cluster, profile: str) -> None:
    trace = experiment(gpu_nodes(8, 8, 8, 4, 4), _TRACE, Load("fill"))
    run = Run(0, profile, 1)
    arrivals = trace.load.arrivals(trace.trace, 36, run.seed)
    start_scheduler(cluster)
    cluster.make_nodes(*(document.content for document in trace.cluster))

    nodes = bound(cluster, created(trace.templates(run), arrivals, SCHEDULERS[profile]))

    found = followed(trace, run, arrivals, nodes)
    assert (found.other_nodes, found.other_outcomes) == ((), ())
    assert found.placed == sum(node is not None for node in nodes)
    assert 0 < found.placed < found.pods


def test_kube_scheduler_evicts_the_pods_that_the_simulation_evicts(cluster: Cluster) -> None:
    amounts = ((0, 8), (0, 4), (0, 4), (100, 8), (50, 4), (0, 2), (100, 4), (50, 8), (0, 4), (100, 8))
    rows = (f"{at},,nvidia.com/gpu={gpus}" for at, (_, gpus) in enumerate(amounts))
    trace = experiment(gpu_nodes(8, 8), lines(*rows, header="arrival,duration,requests"))
    run = Run(0, "default", 1)
    arrivals = paced(trace.trace, [priority for priority, _ in amounts])
    start_scheduler(cluster)
    cluster.make_nodes(*(document.content for document in trace.cluster))
    pods = with_classes(cluster, created(trace.templates(run), arrivals, SCHEDULERS[run.profile]))

    real = really(cluster, pods, arrivals, len(amounts) + 1.5)

    found = compared(trace, run, arrivals, real)
    assert found.difference == ""
    assert found.preemptions >= 3
    assert found.exact > 0
