"""Rules of the simulation, each on a few pods."""

import re
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from placement_planner.simulation.arrival import Arrival, Load
from placement_planner.simulation.outcome import Outcome, Unplaced, Waits
from placement_planner.simulation.sweep import Run, simulated, swept
from tests.support.objects.batch_objects import KAI_TOPOLOGY, kai_group, topology
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.traces import POOL, experiment, gpu_nodes, lines, outcome
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.names import HOSTNAME_LABEL
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.pod.pod_info import PodInfo

GPU = "nvidia.com/gpu"
_GANG = "arrival,duration,replicas,requests,annotations"
_VOLCANO = "workload-type=training;gang=job;gang-size=4"


def waits_of(found: Outcome, by: str = "all", value: str = "") -> Waits:
    return next(each for each in found.waits if (each.by, each.value) == (by, value))


def test_a_pod_waits_until_another_one_ends() -> None:
    found = outcome(gpu_nodes(8), lines("0,100,nvidia.com/gpu=8", "10,5,nvidia.com/gpu=1"))

    assert waits_of(found, "cards", "1") == Waits("cards", "1", 1, 0, 90, 90)


def test_equal_pods_start_in_the_order_in_which_they_came() -> None:
    trace = [f"{at},{lasts},nvidia.com/gpu=8" for at, lasts in ((0, 10), (1, 10), (2, 10), (3, 10))]
    found = outcome(gpu_nodes(8), lines(*trace))

    # They wait 0, 9, 18 and 27 s.
    assert waits_of(found) == Waits("all", "", 4, 0, 9, 27)


def test_the_last_sample_is_of_the_last_arrival() -> None:
    """Pods that end later make no further sample."""
    found = outcome(gpu_nodes(8), lines(*(f"{at},10,nvidia.com/gpu=8" for at in range(4))))

    assert [each.seconds for each in found.series].count(3) == 1
    assert (found.series[-1].seconds, found.series[-1].waiting) == (3, 3)


def test_random_arrivals_of_one_line_of_the_trace_are_gangs_of_their_own() -> None:
    gang = lines(f"0,10,4,nvidia.com/gpu=1,{_VOLCANO}", header=_GANG)
    load = Load("random", load=1.0, span_seconds=200.0)
    found = simulated(experiment(gpu_nodes(6), gang, load), Run(0, "default", 1))

    gangs = waits_of(found, "gang", "4")
    assert gangs.pods > 8
    assert gangs.pods % 4 == 0
    # A part of a gang does not start, so two of six cards stay free.
    assert found.most_allocated == 66.667


def test_a_pod_that_no_node_can_take_is_never_placed() -> None:
    found = outcome(gpu_nodes(4), lines("0,100,nvidia.com/gpu=1", "1,5,nvidia.com/gpu=8"))

    assert waits_of(found, "cards", "8") == Waits("cards", "8", 1, 1, None, None)


def test_waits_are_by_the_number_of_pods_that_start_together() -> None:
    pods = (f"5,10,4,nvidia.com/gpu=2,{_VOLCANO}", "0,100,1,nvidia.com/gpu=8,workload-type=training")
    found = outcome(gpu_nodes(8), lines(*sorted(pods), header=_GANG))

    assert waits_of(found, "gang", "4") == Waits("gang", "4", 4, 0, 95, 95)
    assert waits_of(found, "gang", "1") == Waits("gang", "1", 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("pods", "reason", "count"),
    [
        ("1,nvidia.com/gpu=9,workload-type=training", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 1),
        (f"3,nvidia.com/gpu=1,{_VOLCANO}", "fewer pods arrive than their gang starts with", 3),
        (f"4,nvidia.com/gpu=5,{_VOLCANO}", "there is room for single pods of their gang, not for all", 4),
    ],
)
def test_the_outcome_says_why_pods_were_never_placed(pods: str, reason: str, count: int) -> None:
    found = outcome(
        gpu_nodes(8, 8), lines(f"0,10,{pods}", "0,10,1,nvidia.com/gpu=8,workload-type=training", header=_GANG)
    )

    assert found.unplaced == (Unplaced(count, reason),)


@pytest.mark.parametrize(
    ("requests", "error"),
    [
        (
            "nvidia.com/gpu=0.5",
            'trace.csv, line 2: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": ',
        ),
        (
            "nvidia.com/gpu=-1",
            'trace.csv, line 2, column requests: Invalid value: "nvidia.com/gpu=-1"; nvidia.com/gpu: ',
        ),
    ],
)
def test_a_pod_that_the_api_server_would_reject_is_refused_with_its_place(requests: str, error: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(error)}must be "):
        outcome(gpu_nodes(8), lines(f"0,10,{requests}"))


@pytest.mark.parametrize("begin", [0, 100, 7])
def test_the_allocated_cards_are_a_mean_over_the_time_in_which_pods_arrive(begin: int) -> None:
    # Four of eight cards for 50 s, none for 50 s.
    found = outcome(gpu_nodes(8), lines(f"{begin},50,nvidia.com/gpu=4", f"{begin + 100},1,nvidia.com/gpu=8"))

    assert (found.allocated, found.most_allocated, found.last_allocated) == (25, 100, 100)
    assert (found.series[0].seconds, found.series[-1].seconds) == (begin, begin + 100)


def test_the_series_has_the_state_at_each_time() -> None:
    found = outcome(gpu_nodes(8), lines("0,50,nvidia.com/gpu=4", "100,1,nvidia.com/gpu=8"))

    first = [each.allocated for each in found.series if each.seconds < 50]
    then = [each.allocated for each in found.series if 50 <= each.seconds < 100]
    assert (set(first), set(then)) == ({50}, {0})
    assert len(first) == len(then) > 10


def test_a_cluster_without_cards_has_none_allocated() -> None:
    found = outcome(gpu_nodes(0), lines("0,50,cpu=1", "100,1,cpu=1"))

    assert (found.allocated, found.fragmented, found.most_allocated) == (0, 0, 0)


def test_fragmented_cards_are_those_that_the_pods_of_the_trace_cannot_use() -> None:
    # Four cards are free; one of two pods needs eight.
    found = outcome(gpu_nodes(8), lines("0,,nvidia.com/gpu=4", "0,,nvidia.com/gpu=8"))

    assert found.series[-1].fragmented == 25


def test_the_pod_with_the_higher_priority_is_tried_first() -> None:
    rows = ("0,10,nvidia.com/gpu=8,", "1,10,nvidia.com/gpu=7,0", "2,10,nvidia.com/gpu=6,100")

    found = outcome(gpu_nodes(8), lines(*rows, header="arrival,duration,requests,priority"))

    assert (waits_of(found, "cards", "6").p50, waits_of(found, "cards", "7").p50) == (8, 19)


def test_of_pods_that_arrive_together_the_one_with_the_higher_priority_is_first() -> None:
    rows = ("0,10,nvidia.com/gpu=7,0", "0,10,nvidia.com/gpu=6,100")

    found = outcome(gpu_nodes(8), lines(*rows, header="arrival,duration,requests,priority"))

    assert (waits_of(found, "cards", "6").p50, waits_of(found, "cards", "7").p50) == (0, 10)


def test_a_backoff_lasts_until_the_end_of_its_second() -> None:
    """At 2 s, the backoff of the pod with priority 0 is over; that of the other ends in this second."""
    rows = ("0,2,nvidia.com/gpu=8,0", "0.5,10,nvidia.com/gpu=7,0", "1,10,nvidia.com/gpu=6,100")

    found = outcome(gpu_nodes(8), lines(*rows, header="arrival,duration,requests,priority"))

    assert (waits_of(found, "cards", "7").p50, waits_of(found, "cards", "6").p50) == (1.5, 11)


@pytest.mark.parametrize("freed_at", [9, 25])
def test_a_newcomer_passes_a_pod_whose_backoff_is_long(freed_at: int) -> None:
    """Short pods end every second, so every second both pods that wait are tried, and fail."""
    short = [f"{number},1,nvidia.com/gpu=1" for number in range(40)]
    rows = (f"0,{freed_at - 0.5},nvidia.com/gpu=4", "0.2,10,nvidia.com/gpu=3", "8.2,10,nvidia.com/gpu=2;cpu=1", *short)

    found = outcome(gpu_nodes(4, 1), lines(*rows), profile="default")

    newcomer, old = waits_of(found, "cards", "2"), waits_of(found, "cards", "3")
    assert newcomer.p50 == pytest.approx(freed_at - 0.5 - 8.2)
    assert old.p50 == pytest.approx(freed_at - 0.5 - 0.2 + 10)


def test_volcano_starts_a_gang_whole() -> None:
    rows = ("0,50,1,nvidia.com/gpu=4,workload-type=training", f"1,50,4,nvidia.com/gpu=2,{_VOLCANO}")

    found = outcome(gpu_nodes(8), lines(*rows, header=_GANG), profile="")

    assert waits_of(found, "cards", "2") == Waits("cards", "2", 4, 0, 49, 49)


@pytest.mark.parametrize(("size", "level", "never_placed"), [(4, "", 0), (3, "rack", 0), (4, "rack", 4)])
def test_kai_starts_a_gang_in_one_rack(size: int, level: str, never_placed: int) -> None:
    """Each rack has room for three pods of the gang, and both together for six."""
    group, racks = kai_group("job", members=size), topology("racks", KAI_TOPOLOGY, "rack")
    if level:
        group["spec"]["topologyConstraint"] = {"topology": "racks", "requiredTopologyLevel": level}
    nodes = [
        Document("cluster", make_node_object(name, labels={POOL: "training", "rack": rack}, capacity={GPU: gpus}))
        for name, rack, gpus in (("a", "1", 3), ("b", "1", 4), ("c", "2", 3), ("d", "2", 4))
    ]
    annotations = f"workload-type=training;gang=job;gang-size={size};scheduler=kai-scheduler"
    trace = lines(f"0,50,{size},nvidia.com/gpu=2,{annotations}", header=_GANG)

    found = outcome((*nodes, *(Document("cluster", each) for each in (group, racks))), trace, profile="")

    assert waits_of(found).never_placed == never_placed


def test_kube_scheduler_starts_a_gang_in_part() -> None:
    row = f"1,50,4,nvidia.com/gpu=2,{_VOLCANO};scheduler=default-scheduler"
    rows = ("0,50,1,nvidia.com/gpu=4,workload-type=training", row)

    found = outcome(gpu_nodes(8), lines(*rows, header=_GANG), profile="")

    assert waits_of(found, "cards", "2") == Waits("cards", "2", 4, 0, 0, 49)


def test_a_gang_that_lacks_a_member_never_starts() -> None:
    row = f"0,50,3,nvidia.com/gpu=2,{_VOLCANO}"

    assert waits_of(outcome(gpu_nodes(8), lines(row, header=_GANG), profile="")).never_placed == 3


def test_a_late_pod_of_a_gang_waits_by_itself() -> None:
    rows = ("0,50,1,nvidia.com/gpu=8,workload-type=training", f"1,50,4,nvidia.com/gpu=2,{_VOLCANO}")
    late = f"2,50,1,nvidia.com/gpu=2,{_VOLCANO}"

    found = outcome(gpu_nodes(8), lines(*rows, late, header=_GANG), profile="")

    assert waits_of(found, "cards", "2") == Waits("cards", "2", 5, 0, 49, 98)


def spread_pod(cards: int) -> dict[str, Any]:
    """Return a pod of the app `a` whose pods are spread over nodes."""
    apart = {"maxSkew": 1, "topologyKey": HOSTNAME_LABEL, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**apart, "labelSelector": {"matchLabels": {"app": "a"}}}]
    return make_pod("apart").label("app", "a").gpu(cards).spec(topologySpreadConstraints=spread).obj()


def test_a_pod_that_is_spread_is_tried_though_an_equal_one_waits() -> None:
    """The second would be the second on node-0 with none on node-1. The last comes after one has run there."""
    pod = spread_pod(2)
    other = make_pod("other").label("app", "a").gpu(1).obj()
    found = experiment(gpu_nodes(8, 1), lines("0,,cpu=1"))
    found.trace = tuple(Arrival(at, None, each, 1, "") for at, each in enumerate((pod, pod, other, pod)))

    assert waits_of(simulated(found, Run(0, "binpack", 1))).never_placed == 1


@pytest.mark.parametrize("later", [1, 3])
def test_a_pod_that_is_spread_is_placed_once_another_pod_evens_the_domains(later: int) -> None:
    """node-1 has no room for the second pod. With the other pod there, node-0 can take it, although no pod ends."""
    pod = spread_pod(2)
    other = make_pod("other").label("app", "a").gpu(1).obj()
    found = experiment(gpu_nodes(8, 1), lines("0,,cpu=1"))
    found.trace = (Arrival(0, None, pod, 2, ""), Arrival(1, None, pod, 2, ""), Arrival(1 + later, None, other, 1, ""))

    assert waits_of(simulated(found, Run(0, "binpack", 1)), "cards", "2") == Waits("cards", "2", 2, 0, 0, later)


def near(app: str) -> dict[str, Any]:
    """Return the affinity of a pod that runs only on a node with a pod of `app`."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME_LABEL}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_gang_is_tried_again_for_a_pod_that_a_further_one_of_its_pods_selects() -> None:
    """The first pod of the gang selects only itself, the second one a pod that comes later."""
    gang = make_pod("g").annotate("gang", "job").annotate("gang-size", "2").annotate("workload-type", "training").gpu(1)
    first, second = gang.label("app", "first").spec(affinity=near("first")), gang.spec(affinity=near("other"))
    pods = (first, second, make_pod("other").label("app", "other").gpu(1))
    found = experiment(gpu_nodes(8, 8), lines("0,,cpu=1"))
    found.trace = tuple(Arrival(at, None, pod.obj(), 1, "") for at, pod in enumerate(pods))

    assert waits_of(simulated(found, Run(0, "", 1))).never_placed == 0


def test_a_waiting_pod_is_not_tried_again_for_pods_that_it_does_not_select(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = spread_pod(9)
    other = make_pod("other").label("app", "b").gpu(1).obj()
    found = experiment(gpu_nodes(8, 8), lines("0,,cpu=1"))
    filtered, tried = PodTopologySpread.filter, Counter[int]()

    def counted(plugin: PodTopologySpread, info: PodInfo, *given: Any) -> Any:
        tried[len(found.trace)] += bool(info.inter_pod.spread)
        return filtered(plugin, info, *given)

    monkeypatch.setattr(PodTopologySpread, "filter", counted)
    for others in (1, 9):
        found.trace = (Arrival(0, None, pod, 9, ""), *[Arrival(1 + at, None, other, 1, "") for at in range(others)])
        simulated(found, Run(0, "default", 1))

    assert tried[2] == tried[10] > 0


def test_pods_that_need_one_that_waits_are_placed_with_it_when_room_is_freed() -> None:
    """The pods that need another one are tried before it, because of their priorities."""
    pods = (
        make_pod("first").gpu(3).spec(affinity=near("second"), priority=20),
        make_pod("second").label("app", "second").gpu(2).spec(affinity=near("third"), priority=10),
        make_pod("third").label("app", "third").gpu(1),
    )
    found = experiment(gpu_nodes(8), lines("0,,cpu=1"))
    found.trace = (
        Arrival(0, 50, make_pod("full").gpu(8).obj(), 8, ""),
        *(Arrival(at, None, pod.obj(), 4 - at, "") for at, pod in enumerate(pods, 1)),
        Arrival(900, None, make_pod("late").gpu(2).obj(), 2, ""),
    )

    waited = {each.value: each.p99 for each in simulated(found, Run(0, "default", 1)).waits if each.by == "cards"}
    assert waited == {"1": 47, "2": 48, "3": 49, "8": 0}


@pytest.mark.parametrize("second", [False, True], ids=["one waits", "an equal one comes later"])
def test_a_pod_starts_once_a_pod_that_kept_it_out_of_the_zone_ends_on_another_node(second: bool) -> None:
    """When the pod began to wait, no pod had anti-affinity; at 20 s, only that of the last keeps it from node-0."""
    zone = "topology.kubernetes.io/zone"
    against = [{"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": zone}]
    avoids = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": against}}
    waits = make_pod("waits").label("app", "a").gpu(8).obj()
    # Only node-1 has room for it.
    avoiding = make_pod("avoids").requests(cpu=2).spec(affinity=avoids).obj()
    found = experiment(gpu_nodes(8, 7, labels={zone: "z"}), lines("0,,cpu=1"))
    documents = [replace(each, content=deepcopy(each.content)) for each in found.cluster]
    for document, cpu in zip(documents, (1, 2), strict=True):
        document.content["status"]["allocatable"]["cpu"] = cpu
    found.cluster = tuple(documents)
    found.trace = (
        Arrival(0, 20, make_pod("first").gpu(8).obj(), 8, ""),
        Arrival(0, None, make_pod("second").gpu(7).obj(), 7, ""),
        Arrival(1, 5, waits, 8, ""),
        Arrival(2, 28, avoiding, 0, ""),
        Arrival(25 if second else 100, 5, waits, 8, ""),
    )

    # Until 30 s, or behind the first for 5 s more.
    waited = waits_of(simulated(found, Run(0, "default", 1)), "cards", "8")
    assert (waited.pods, waited.never_placed, waited.p99) == (3, 0, 29)


def test_a_pod_that_needs_another_one_is_placed_once_that_one_is() -> None:
    """The second pod arrives with the first, and waits for it by required pod affinity."""
    near = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOSTNAME_LABEL}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    needs = make_pod("needs").gpu(2).affinity(affinity).obj()
    other = make_pod("other").label("app", "a").gpu(1).obj()
    found = experiment(gpu_nodes(8, 8), lines("0,,cpu=1"))
    found.trace = (Arrival(0, None, needs, 2, ""), Arrival(0, None, other, 1, ""))

    assert waits_of(simulated(found, Run(0, "default", 1))) == Waits("all", "", 2, 0, 0, 0)


def test_denied_pods_are_counted_with_the_message() -> None:
    header = "arrival,requests,annotations"

    found = outcome(gpu_nodes(8), lines("0,nvidia.com/gpu=1,workload-type=trainning", "1,cpu=1,", header=header))

    assert (found.denied, found.pods) == (1, 1)
    assert "trainning" in found.denial


@pytest.mark.slow
def test_equal_seeds_have_equal_outcomes_in_any_process() -> None:
    trace = lines(*(f"{number},30,nvidia.com/gpu={1 + number % 3}" for number in range(30)))
    shared = experiment(gpu_nodes(4, 4, 4), trace, Load("random", 0.9, span_seconds=200))
    runs = [Run(0, profile, seed) for profile in ("default", "binpack") for seed in (1, 2)]

    found = dict(swept(shared, runs, 2))

    assert found == {run: simulated(shared, run) for run in runs}
    assert len({found[run].allocated for run in runs}) > 1


@pytest.mark.slow
def test_random_arrivals_use_the_load_on_average() -> None:
    shared = experiment(gpu_nodes(8, 8, 8, 8), lines("0,,nvidia.com/gpu=1"), Load("random", 0.5, 10_000, 100))

    assert simulated(shared, Run(0, "default", 1)).allocated == pytest.approx(50, abs=3)


@pytest.mark.parametrize(("cards", "requests"), [(0, "nvidia.com/gpu=1"), (8, "cpu=1")], ids=["cluster", "trace"])
def test_random_arrivals_need_cards(cards: int, requests: str) -> None:
    shared = experiment(gpu_nodes(cards), lines(f"0,9,{requests}"), Load("random", 0.5, 100))

    with pytest.raises(InvalidInput, match="no pod of the trace uses a card of the cluster"):
        simulated(shared, Run(0, "default", 1))


def test_a_fill_ends_when_the_cards_are_requested() -> None:
    trace = lines(*(f"0,5,nvidia.com/gpu={1 + number % 2}" for number in range(30)))
    shared = experiment(gpu_nodes(8, 8), trace, Load("fill"))

    found = simulated(shared, Run(0, "binpack", 3))

    assert found.last_allocated == 100
    assert found.pods < 30


def test_pods_that_need_each_other_in_a_chain_are_placed_once_the_last_one_is() -> None:
    """Each pod waits for the one after it by required pod affinity."""

    def pod(app: str, needs: str) -> Arrival:
        near = {"labelSelector": {"matchLabels": {"app": needs}}, "topologyKey": HOSTNAME_LABEL}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}} if needs else {}
        made = make_pod(app).label("app", app).gpu(1)
        return Arrival(0, None, (made.affinity(affinity) if needs else made).obj(), 1, "")

    found = experiment(gpu_nodes(8, 8), lines("0,,cpu=1"))
    found.trace = (pod("a", "b"), pod("b", "c"), pod("c", "d"), pod("d", ""))

    assert waits_of(simulated(found, Run(0, "default", 1))) == Waits("all", "", 4, 0, 0, 0)


def test_gang_leaves_the_largest_rack_to_a_later_one() -> None:
    """Of two racks with room, a gang of two gets the smaller one, and the larger one is left for one of four."""
    groups = [kai_group(name, members=size) for name, size in (("small", 2), ("large", 4))]
    for group in groups:
        group["spec"]["topologyConstraint"] = {"topology": "racks", "requiredTopologyLevel": "rack"}
    nodes = [
        make_node_object(name, labels={POOL: "training", "rack": rack}, capacity={GPU: 2})
        for rack, count in (("1", 4), ("2", 2))
        for name in (f"{rack}-{number}" for number in range(count))
    ]
    rows = [
        f"{at},50,{size},nvidia.com/gpu=2,workload-type=training;gang={name};gang-size={size};scheduler=kai-scheduler"
        for at, name, size in ((0, "small", 2), (1, "large", 4))
    ]
    cluster = [Document("cluster", each) for each in (*nodes, *groups, topology("racks", KAI_TOPOLOGY, "rack"))]

    found = outcome(tuple(cluster), lines(*rows, header=_GANG), profile="")

    assert (waits_of(found).never_placed, waits_of(found).p99) == (0, 0)


def test_each_draw_of_a_gang_is_a_gang_of_its_own() -> None:
    row = f"0,50,4,nvidia.com/gpu=2,{_VOLCANO}"
    found = experiment(gpu_nodes(8), lines(row, header=_GANG))
    (gang,) = found.trace
    found.trace = tuple(replace(gang, at_seconds=draw, replicas=2, draw=draw) for draw in range(2))

    assert waits_of(simulated(found, Run(0, "", 1))).never_placed == 4
