"""Preemption in the simulation: who is evicted, for whom the room is kept, and what is lost."""

from dataclasses import replace

import pytest

from placement_planner.simulation.outcome import Evictions, Outcome
from placement_planner.simulation.sweep import Experiment, Run, simulated
from tests.support.objects.builders import make_pod
from tests.support.programs.traces import experiment, gpu_nodes, lines
from webhook.documents.documents import Document

_HEADER = "arrival,duration,requests,priority"
_TYPES = "arrival,duration,requests,annotations"


def preempting(cluster: tuple[Document, ...], *rows: str, header: str = _HEADER) -> Experiment:
    found = experiment(cluster, lines(*rows, header=header))
    found.preempts = True
    return found


def outcome(cluster: tuple[Document, ...], *rows: str, seed: int = 1) -> Outcome:
    return simulated(preempting(cluster, *rows), Run(0, "default", seed))


def longest_waits(found: Outcome, by: str = "priority") -> dict[str, float | None]:
    return {each.value: each.p99 for each in found.waits if each.by == by}


def test_a_victim_runs_for_its_grace_period_and_starts_again_from_the_beginning() -> None:
    found = outcome(gpu_nodes(8), "0,100,nvidia.com/gpu=8,0", "10,20,nvidia.com/gpu=8,100")

    # Until 40 s, the victim ends; until 60 s, the other pod runs.
    assert longest_waits(found) == {"0": 50, "100": 30}
    assert found.evictions == (Evictions(0, 1, 0, round(40 / 3600, 6), round(8 * 40 / 3600, 6)),)


def test_nobody_is_evicted_unless_asked_for() -> None:
    trace = preempting(gpu_nodes(8), "0,100,nvidia.com/gpu=8,0", "10,20,nvidia.com/gpu=8,100")
    found = simulated(replace(trace, preempts=False), Run(0, "default", 1))

    assert (found.evictions, longest_waits(found, "all"), longest_waits(found)) == (None, {"": 90}, {})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_pod_that_started_last_is_evicted(seed: int) -> None:
    rows = ("0,100,nvidia.com/gpu=8,0", "1,100,nvidia.com/gpu=8;cpu=1,0", "10,200,nvidia.com/gpu=8,100")

    found = outcome(gpu_nodes(8, 8), *rows, seed=seed)

    # It ran for 39 s with its grace period, and gets the node of the first one when that ends.
    assert found.evictions is not None
    assert (found.evictions[0].pods, found.evictions[0].pod_hours) == (1, round(39 / 3600, 6))
    assert longest_waits(found)["0"] == 90


def test_of_equal_pods_the_seed_decides() -> None:
    rows = ("0,100,nvidia.com/gpu=8,0", "0,900,nvidia.com/gpu=8,0", "10,2000,nvidia.com/gpu=8,100")

    waits = {longest_waits(outcome(gpu_nodes(8, 8), *rows, seed=seed))["0"] for seed in range(1, 9)}

    assert waits == {90, 890}


def test_the_room_of_victims_is_kept_for_the_pod_that_evicted_them() -> None:
    # Two of the GPUs are free all the time, and the pod with priority 0 that asks for them must not take them.
    rows = ("0,900,nvidia.com/gpu=6,0", "10,20,nvidia.com/gpu=8,100", "11,9,nvidia.com/gpu=2,0")

    found = outcome(gpu_nodes(8), *rows)

    assert longest_waits(found)["100"] == 30
    assert longest_waits(found, "cards")["2"] == 49


def test_a_higher_pod_takes_the_node_that_is_kept_for_another() -> None:
    rows = ("0,900,nvidia.com/gpu=8,0", "10,20,nvidia.com/gpu=8,50", "20,10,nvidia.com/gpu=8,100")

    found = outcome(gpu_nodes(8), *rows)

    assert longest_waits(found) == {"0": 60, "50": 40, "100": 20}
    assert [each.pods for each in found.evictions or ()] == [1]


def test_a_victim_evicts_pods_of_still_lower_priority() -> None:
    # The second pod needs node-1 since the first is on node-0, which the third gets.
    rows = ("0,5,nvidia.com/gpu=8,0", "1,900,nvidia.com/gpu=6,0", "6,900,nvidia.com/gpu=6;cpu=1,50")

    found = outcome(gpu_nodes(8, 6), *rows, "10,900,nvidia.com/gpu=8,100")

    assert longest_waits(found) == {"0": 930, "50": 30, "100": 30}
    assert [(each.priority, each.pods) for each in found.evictions or ()] == [(0, 1), (50, 1)]


def test_a_pod_that_waits_preempts_once_a_pod_of_its_own_priority_has_left() -> None:
    rows = ("0,50,nvidia.com/gpu=4,100", "0,900,nvidia.com/gpu=4,0", "10,10,nvidia.com/gpu=8,100")

    assert longest_waits(outcome(gpu_nodes(8), *rows))["100"] == 70


def test_each_of_equal_pods_evicts_pods() -> None:
    rows = ("0,900,nvidia.com/gpu=8,0", "0,900,nvidia.com/gpu=8,0", *["10,10,nvidia.com/gpu=8,100"] * 2)

    found = outcome(gpu_nodes(8, 8), *rows)

    assert longest_waits(found)["100"] == 30
    assert [each.pods for each in found.evictions or ()] == [2]


def test_a_victim_without_a_controller_is_lost() -> None:
    trace = preempting(gpu_nodes(8), "0,100,nvidia.com/gpu=8,0", "10,20,nvidia.com/gpu=8,100")
    trace.trace = (replace(trace.trace[0], is_restarted=False), trace.trace[1])

    found = simulated(trace, Run(0, "default", 1))

    assert [(each.pods, each.ended) for each in found.evictions or ()] == [(1, 1)]
    assert longest_waits(found) == {"0": 0, "100": 30}


def test_a_running_pod_of_the_cluster_is_evicted_and_lost() -> None:
    running = make_pod("old").namespace("a").node_name("node-0").gpu(8).obj()
    cluster = (*gpu_nodes(8), Document("cluster", running))

    found = outcome(cluster, "0,20,nvidia.com/gpu=8,100", "100,1,nvidia.com/gpu=8,100")

    assert found.evictions == (Evictions(0, 1, 1, round(30 / 3600, 6), round(8 * 30 / 3600, 6)),)
    assert longest_waits(found) == {"100": 30}


def test_a_scheduler_that_is_no_kube_scheduler_evicts_nobody() -> None:
    rows = ("0,100,nvidia.com/gpu=8,0,", "10,20,nvidia.com/gpu=8,100,volcano")
    trace = preempting(gpu_nodes(8), *rows, header=f"{_HEADER},scheduler")

    found = simulated(trace, Run(0, "", 1))

    assert (found.evictions, longest_waits(found)) == ((), {"0": 0, "100": 90})


def test_workload_types_have_priorities() -> None:
    rows = ("0,100,nvidia.com/gpu=8,workload-type=training", "10,20,nvidia.com/gpu=8,workload-type=inference")
    trace = preempting(gpu_nodes(8, labels={}), *rows, header=_TYPES)
    trace.priorities = {"training": 7, "inference": 9}

    assert [each.value for each in simulated(trace, Run(0, "default", 1)).waits if each.by == "priority"] == ["7", "9"]
