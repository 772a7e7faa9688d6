"""The order in which waiting pods are tried again, and what must be free before they are."""

from dataclasses import replace
from itertools import count, product
from math import floor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.backlog import Backlog, Group, Groups, TracePod, Unit
from placement_planner.simulation.sweep import Run
from placement_planner.simulation.templates import RankedScheduler, Template
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from tests.support.programs.traces import experiment, gpu_nodes, lines
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scheduler import PodSignature, Scheduler


class PlainBacklog:
    """The queue written plainly: each unit has its failed attempts and the time and turn of the last."""

    def __init__(self) -> None:
        self.failures: dict[Unit, tuple[int, float, int]] = {}
        self.turn = count()

    def add(self, unit: Unit, now: float) -> None:
        self.failures[unit] = 1, now, next(self.turn)

    def order(self, now: float) -> list[Unit]:
        """Return the units in the order of their attempts at an event at `now`."""

        def key(unit: Unit) -> tuple[float, int, int]:
            failed, at, turn = self.failures[unit]
            ends = floor(at + min(2 ** (failed - 1), 10))
            return ends if ends >= floor(now) else 0, -unit.priority, turn

        return sorted(self.failures, key=key)

    def end_event(self, now: float) -> None:
        for unit in self.order(now):
            self.failures[unit] = self.failures[unit][0] + 1, now, next(self.turn)


def unit_of(priority: int) -> Unit:
    template: Any = SimpleNamespace(priority=priority)
    return Unit([TracePod(template, 0, None)])


# What happens next and after how many halves of a second; an event tries all units, and a unit can be placed.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "event", "event", "event", "remove")),
        st.sampled_from((0, 1, 2, 3, 4, 5, 8, 16, 20, 22)),
        st.integers(0, 1),
    ),
    min_size=4,
    max_size=40,
)


# Backoffs of ten seconds that end in one second: after four attempts, and of units whose order has not settled.
FOUR_ATTEMPTS = [("add", 4, 1), ("event", 0, 1), ("add", 4, 1), *(("event", halves, 0) for halves in (4, 16, 20, 22))]
UNSETTLED = [
    *(("add", 2, 0), ("event", 22, 0), ("event", 2, 0), ("event", 16, 0), ("event", 8, 1)),
    *(("add", 20, 0), ("event", 5, 0), ("event", 22, 0)),
]


@example(FOUR_ATTEMPTS)
@example(UNSETTLED)
@given(STEPS)
@settings(max_examples=examples(300))
def test_units_are_tried_in_the_order_of_a_plain_queue(steps: list[tuple[str, int, int]]) -> None:
    backlog, plain, now = Backlog(), PlainBacklog(), 0.0
    for action, halves, choice in steps:
        now += halves / 2
        waiting = plain.order(now)
        if action == "add":
            unit = unit_of(choice)
            backlog.add(unit, now)
            plain.add(unit, now)
        elif action == "event":
            assert sorted(waiting, key=lambda unit: backlog.order(unit, now)) == waiting
            backlog.end_event(now)
            plain.end_event(now)
        elif waiting:
            unit = waiting[-1 if choice else 0]
            backlog.remove(unit)
            del plain.failures[unit]
            assert not unit.is_waiting
        assert backlog.count == len(plain.failures)


@pytest.mark.parametrize("requests", [{"nvidia.com/gpu": 4}, {"cpu": 2}, {"cpu": 2, "nvidia.com/gpu": 4}])
@pytest.mark.parametrize("free", [3, 4, 5, 7, 8])
def test_a_group_may_fit_if_a_freed_node_has_room_for_one_and_all_nodes_for_the_gang(
    requests: dict[str, int], free: int
) -> None:
    """Node a has so much free for pods that need 4, and node b has room for two of them."""
    used = {name: amount * 2 - (free * amount) // 4 for name, amount in requests.items()}
    capacity = {"cpu": 4, "nvidia.com/gpu": 8}
    full = node("a", make_pod("x").requests(**used), capacity=capacity)
    snapshot = Snapshot.of([full, node("b", capacity=capacity)])
    amounts = tuple((name, amount * (1000 if name == "cpu" else 1)) for name, amount in requests.items())
    on_a = min((capacity[name] - used[name]) // amount for name, amount in requests.items())
    for least, reads_pods in product((1, 2, 3, 4, 5), (False, True)):
        group = Group(cast("Any", None), least, amounts, reads_pods=reads_pods)
        is_single = least == 1 and not reads_pods

        assert group.has_room(snapshot.nodes[0]) is (on_a > 0)
        wanted = (reads_pods or on_a > 0) and (is_single or on_a + 2 >= least)
        assert group.may_fit(snapshot, [snapshot.nodes[0]]) is wanted


def test_pods_of_a_node_bound_how_many_of_a_gang_fit() -> None:
    snapshot = Snapshot.of([node("a", make_pod("x"), capacity={"pods": 3})])

    fits = [Group(cast("Any", None), least, (("cpu", 1),)).may_fit(snapshot, snapshot.nodes) for least in (2, 3)]

    assert fits == [True, False]


def units_of(*rows: str) -> list[Unit]:
    """Return a unit of one pod for each row of a trace."""
    trace = experiment(gpu_nodes(8), lines(*rows))
    templates = trace.templates(Run(0, "default", 1))
    found = [templates.of(each) for each in trace.trace]
    return [Unit([TracePod(each, 0, None)]) for each in found if isinstance(each, Template)]


def test_units_share_a_group_if_one_scheduler_reads_their_pods_as_equal() -> None:
    groups = Groups()
    first, equal, other = units_of("0,5,nvidia.com/gpu=1", "7,9,nvidia.com/gpu=1", "0,5,nvidia.com/gpu=2")
    template = first.pods[0].template
    elsewhere = Unit([TracePod(replace(template, scheduler=RankedScheduler(DEFAULT)), 0, None)])
    gang = Unit([TracePod(template, 0, None)] * 2, 2)

    assert groups.of(first) is groups.of(equal)
    assert len({id(groups.of(each)) for each in (first, other, elsewhere)}) == 3
    assert groups.of(gang) is not groups.of(first)


def test_whether_a_group_reads_pods_of_other_nodes_is_known_of_its_last_attempt() -> None:
    against = [{"labelSelector": {}, "topologyKey": "zone"}]
    avoids = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": against}}
    plain = Snapshot.of([node("a", labels={"zone": "z"})])
    avoided = Snapshot.of([node("a", make_pod("avoids").spec(affinity=avoids), labels={"zone": "z"})])
    groups, (unit, later) = Groups(), units_of(*["0,5,cpu=1"] * 2)
    group = groups.of(unit)
    reads = []
    for each in (unit, later):
        for snapshot in (plain, avoided):
            groups.wait(group, each, snapshot)
            each.is_waiting = True
            reads.append(group.reads_pods)
            groups.settle(group, snapshot)
            reads.append(group.reads_pods)
            group.failed_at = 3
            group.units, each.is_waiting = [], False
    # The first unit waits on while a pod that avoids it starts, and ends.
    unit.is_waiting = True
    groups.wait(group, unit, plain)
    for snapshot in (avoided, plain):
        groups.settle(group, snapshot)
        reads.append(group.reads_pods)

    assert reads == [False, False, True, True] * 2 + [True, False]
    assert groups.waiting == [group]
    unit.is_waiting = False
    groups.settle(group, plain)
    assert (groups.waiting, group.units) == ([], [])


def test_a_group_asks_for_what_its_scheduler_counts() -> None:
    pod = make_pod().requests(cpu=1).pod_resources(cpu=16).obj()
    full = node("a", capacity={"cpu": "8"})
    for profile, has_room in ((DEFAULT, False), (KAI, True)):
        template = SimpleNamespace(
            scheduler=SimpleNamespace(scheduler=Scheduler(profile)), signature=PodSignature.of(pod), gang=None
        )
        unit = cast("Any", SimpleNamespace(pods=[SimpleNamespace(template=cast("Any", template))], least=2))
        assert Groups().of(unit).has_room(full) is has_room


def near(*apps: str, **namespaces: Any) -> PodBuilder:
    terms = [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone", **namespaces} for app in apps]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return make_pod().namespace("x").spec(affinity={"podAffinity": required})


def spread(when_unsatisfiable: str, **selector: Any) -> PodBuilder:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when_unsatisfiable, **selector}
    return make_pod().namespace("x").label("app", "a").spec(topologySpreadConstraints=[constraint])


OF_A = {"labelSelector": {"matchLabels": {"app": "a"}}}


@pytest.mark.parametrize(
    ("waiting", "helped_by"),
    [
        pytest.param(make_pod().namespace("x"), [], id="no other pod"),
        pytest.param(near("a"), ["x/a"], id="affinity to an app of its namespace"),
        pytest.param(near("a", namespaces=["x", "y"]), ["x/a", "y/a"], id="affinity across namespaces"),
        pytest.param(near("a", namespaceSelector={"matchLabels": {"team": "y"}}), ["y/a"], id="namespaces by label"),
        pytest.param(near("a", "b"), [], id="a pod counts if all terms select it"),
        pytest.param(near("a", "a"), ["x/a"], id="both terms select one pod"),
        pytest.param(spread("DoNotSchedule", **OF_A), ["x/a"], id="spread over pods of its namespace"),
        pytest.param(spread("DoNotSchedule", labelSelector={}), ["x/a", "x/b"], id="spread over all pods"),
        pytest.param(spread("DoNotSchedule"), [], id="spread over no pods"),
        pytest.param(spread("ScheduleAnyway", **OF_A), [], id="spread as a preference"),
    ],
)
def test_a_waiting_pod_is_helped_by_the_pods_that_it_selects(waiting: PodBuilder, helped_by: list[str]) -> None:
    """They are those for which kube-scheduler moves it from the unschedulable pods to its queue."""
    namespaces = {each: Namespace({"team": each}, {}) for each in "xy"}
    snapshot = Snapshot.of([node("a", labels={"zone": "z"})], namespaces)
    names = [f"{namespace}/{app}" for namespace in "xy" for app in "ab"]
    pods = [waiting, *(make_pod().namespace(name[0]).label("app", name[-1]) for name in names)]
    templates = experiment(gpu_nodes(8), lines("0,5,cpu=1")).templates(Run(0, "default", 1))
    arrivals = [Arrival(0, None, pod.obj(), 0, "") for pod in pods]
    first, *placed = [each for each in map(templates.of, arrivals) if isinstance(each, Template)]
    groups, unit = Groups(), Unit([TracePod(first, 0, None)])
    groups.wait(groups.of(unit), unit, snapshot)

    group = groups.of(unit)
    assert [name for name, pod in zip(names, placed, strict=True) if group.waits_for(pod, snapshot)] == helped_by
