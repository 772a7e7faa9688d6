"""Preemption in the simulation: who is evicted, for whom the room is kept, and what is lost."""

from dataclasses import replace
from typing import Any

import pytest

from placement_planner.simulation.backlog import Group, TracePod, Unit
from placement_planner.simulation.cluster import SimulatedCluster
from placement_planner.simulation.outcome import Evictions, Outcome
from placement_planner.simulation.preemption import Choice, Preemption, can_preempt
from placement_planner.simulation.sweep import Experiment, Run, simulated
from placement_planner.simulation.templates import Template
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.plugins import node
from tests.support.programs.traces import POOL, experiment, gpu_nodes, lines
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
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


def test_victims_of_one_pod_wait_again_in_the_order_of_their_eviction() -> None:
    """The pod with 6 cards came before that with 4 and started after it, so it is the second victim."""
    first_evicted, last_evicted = "1,,nvidia.com/gpu=4,0", "0.5,,nvidia.com/gpu=6,0"
    before, preempting_pod = "0,5,nvidia.com/gpu=5,0", "10,20,nvidia.com/gpu=10,100"

    # At 60 s, 6 cards are left for the victims.
    found = outcome(gpu_nodes(10), before, last_evicted, first_evicted, preempting_pod, "45,,nvidia.com/gpu=4;cpu=1,50")

    assert {each.value: each.never_placed for each in found.waits if each.by == "cards"} == {
        "4": 0,
        "5": 0,
        "6": 1,
        "10": 0,
    }


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


@pytest.mark.parametrize("scheduler", ["", "volcano"], ids=["its own pods", "the pods of another scheduler"])
def test_the_room_of_victims_is_kept_for_the_pod_that_evicted_them(scheduler: str) -> None:
    """The same kube-scheduler places all pods."""
    # Two of the GPUs are free all the time, and the pod with priority 0 that asks for them must not take them.
    rows = ("0,900,nvidia.com/gpu=6,0", "10,20,nvidia.com/gpu=8,100", "11,9,nvidia.com/gpu=2,0")

    named = (f"{row},{scheduler}" for row in rows)
    found = simulated(preempting(gpu_nodes(8), *named, header=f"{_HEADER},scheduler"), Run(0, "default", 1))

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

    # The other pod is evicted at 50 s, waits again from then on, and is placed again at 90 s.
    assert longest_waits(outcome(gpu_nodes(8), *rows)) == {"0": 40, "100": 70}


def test_a_pod_preempts_if_an_equal_one_could_not_before_others_ended() -> None:
    """From 20 s on, both nodes have only pods of lower priority."""
    rows = [*["0,20,nvidia.com/gpu=5,100"] * 2, *["0,900,nvidia.com/gpu=3,0"] * 2]

    found = outcome(gpu_nodes(8, 8), *rows, "10,99,nvidia.com/gpu=8,100", "30,10,nvidia.com/gpu=8,100")

    assert longest_waits(found)["100"] == 40


@pytest.mark.parametrize(
    ("victim", "other", "waits"),
    [
        ({"terminationGracePeriodSeconds": 5}, {}, {"0": 25, "100": 5}),
        ({}, {"schedulingGates": [{"name": "example.com/quota"}]}, {"0": 0, "100": None}),
    ],
    ids=["a grace period of its own", "for a pod with a gate"],
)
def test_fields_of_pods_decide_on_evictions(
    victim: dict[str, Any], other: dict[str, Any], waits: dict[str, float | None]
) -> None:
    trace = preempting(gpu_nodes(8), "0,100,nvidia.com/gpu=8,0", "10,20,nvidia.com/gpu=8,100")
    trace.trace = tuple(
        replace(each, pod={**each.pod, "spec": {**each.pod["spec"], **fields}})
        for each, fields in zip(trace.trace, (victim, other), strict=True)
    )

    found = simulated(trace, Run(0, "default", 1))

    assert (len(found.evictions or ()), longest_waits(found)) == (1 if victim else 0, waits)


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


def test_no_pod_is_evicted_for_a_gang() -> None:
    gang = "10,20,2,nvidia.com/gpu=8,100,workload-type=training;gang=job;gang-size=2"
    rows = ("0,100,2,nvidia.com/gpu=8,0,workload-type=training", gang)
    trace = preempting(gpu_nodes(8, 8), *rows, header="arrival,duration,replicas,requests,priority,annotations")

    found = simulated(trace, Run(0, "default", 1))

    assert (found.evictions, longest_waits(found)) == ((), {"0": 0, "100": 90})


def test_room_that_a_pod_gives_up_is_tried_when_a_pod_ends_elsewhere() -> None:
    """A pod that evicts another gets another node before its victim has ended. Then others fit beside the victim."""
    nodes = {"0": (8, 1), "1": (9, 16), "2": (7, 1)}
    cluster = tuple(
        Document("c", make_node_object(name, labels={POOL: "training"}, capacity={"nvidia.com/gpu": cards, "cpu": cpu}))
        for name, (cards, cpu) in nodes.items()
    )
    running = ("0,900,nvidia.com/gpu=9;cpu=2,0", "1,19,nvidia.com/gpu=8,100", "2,23,nvidia.com/gpu=7,100")

    found = outcome(cluster, *running, "10,900,nvidia.com/gpu=8;cpu=1,100", "12,900,cpu=14,0")

    assert (longest_waits(found, "cards")["8"], longest_waits(found, "cards")["0"]) == (10, 13)


def test_workload_types_have_priorities() -> None:
    rows = ("0,100,nvidia.com/gpu=8,workload-type=training", "10,20,nvidia.com/gpu=8,workload-type=inference")
    trace = preempting(gpu_nodes(8, labels={}), *rows, header=_TYPES)
    trace.priorities = {"training": 7, "inference": 9}

    assert [each.value for each in simulated(trace, Run(0, "default", 1)).waits if each.by == "priority"] == ["7", "9"]


def preemption_on(nodes: int) -> tuple[SimulatedCluster, list[str], Preemption]:
    """Return a cluster, the nodes on which the next pods preempt, and its preemption."""
    cluster = SimulatedCluster(Snapshot.of([node(f"n{number}") for number in range(nodes)]))
    chosen: list[str] = []
    return cluster, chosen, Preemption(cluster, lambda *_: Choice(chosen.pop(0), ()) if chosen else None)


def waiting(priority: int) -> Unit:
    trace = experiment(gpu_nodes(8), lines(f"0,5,cpu=1,{priority}", header=_HEADER))
    template = trace.templates(Run(0, "default", 1)).of(trace.trace[0])
    assert isinstance(template, Template)
    return Unit([TracePod(template, 0, 5)])


@pytest.mark.parametrize("priority", [4, 5, 6])
@pytest.mark.parametrize("target", ["n0", "n1"])
def test_a_pod_takes_the_node_that_is_kept_for_one_of_lower_priority(target: str, priority: int) -> None:
    cluster, chosen, preemption = preemption_on(2)
    first, second = waiting(5), waiting(priority)
    chosen += ["n0", target]
    for unit in (first, second):
        preemption.victims_of(unit)

    is_displaced = target == "n0" and priority > 5
    assert preemption.is_nominated(first) is not is_displaced
    assert preemption.is_nominated(second)
    kept = {name: len(pods) for name, pods in cluster.snapshot.nominated.by_node.items()}
    assert kept == ({"n0": 1, "n1": 1} if target == "n1" else {"n0": 1 if is_displaced else 2})
    # Room that is given up is tried again by others, once.
    assert (preemption.changes, preemption.given_up()) == ((1, {0}) if is_displaced else (0, set()))
    assert preemption.given_up() == set()


def test_a_pod_that_preempts_elsewhere_or_no_longer_gives_up_its_node() -> None:
    cluster, chosen, preemption = preemption_on(2)
    unit = waiting(5)
    chosen += ["n0", "n1"]
    preemption.victims_of(unit)
    assert preemption.signature_of(unit).info.nomination.node_name == "n0"
    preemption.victims_of(unit)

    assert preemption.signature_of(unit).info.nomination.node_name == "n1"
    assert [*cluster.snapshot.nominated.by_node] == ["n1"]
    # Nothing on its node ends for it, so it does not wait there.
    assert preemption.victims_of(unit) == ()
    assert not preemption.is_nominated(unit)
    assert preemption.given_up() == {0, 1}
    assert preemption.signature_of(unit) == unit.pods[0].template.signature


@pytest.mark.parametrize("victim", [4, 5])
def test_a_pod_waits_on_its_node_while_a_lower_victim_ends(victim: int) -> None:
    cluster, chosen, preemption = preemption_on(1)
    unit = waiting(5)
    running = cluster.add(RunningPod.of(make_pod("v").spec(priority=victim).obj()), 0)
    chosen += ["n0"]
    preemption.victims_of(unit)
    cluster.evict(running)
    preemption.victims_of(unit)

    assert preemption.is_nominated(unit) is (victim < 5)


def test_only_victims_that_do_not_end_yet_are_evicted() -> None:
    pods = [RunningPod.of(make_pod(name).obj()) for name in "ab"]
    victims = [pods[0], pods[1]._replace(is_terminating=True)]
    cluster = SimulatedCluster(Snapshot.of([node("n0")]))

    assert Preemption(cluster, lambda *_: Choice("n0", victims)).victims_of(waiting(5)) == [pods[0]]


def test_names_and_start_times_of_pods_differ_and_follow_those_of_the_cluster() -> None:
    old = RunningPod.of(make_pod("old").obj())._replace(started_seconds=100, node_name="n0")
    cluster = SimulatedCluster(Snapshot.of([node("n0").with_pods((old,))]))
    preemption = Preemption(cluster, lambda *_: None)
    pod = RunningPod.of(make_pod("p").obj())
    named = [preemption.named(pod, started) for started in (0, 7.9)]

    assert [(each.name, each.started_seconds) for each in named] == [("p-1", 101), ("p-2", 108)]


@pytest.mark.parametrize(("priority", "can"), [(4, False), (5, False), (6, True)])
def test_a_group_can_preempt_where_lower_pods_hold_its_room(priority: int, *, can: bool) -> None:
    full = node("n", make_pod("low").requests(cpu=4).spec(priority=5), capacity={"cpu": 4})
    template = waiting(priority).pods[0].template

    assert can_preempt(Group(template, 1, (("cpu", 1000),)), [full]) is can
    assert can_preempt(Group(template, 1, (("cpu", 5000),)), [full]) is False
