"""The number of further pods is the one that is placed one after the other."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import repeat
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from placement_planner.capacity import counting
from placement_planner.capacity.counting import Count, Range, count_each, count_together
from placement_planner.capacity.simulation import FurtherPods, RandomRun, random_run
from tests.oracles import strategies_pods
from tests.oracles.strategies import clusters, pending_pods
from tests.oracles.strategies_nominated import nominations
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import make_pv, make_pvc, make_storage_class, uses
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import BudgetSpentError
from webhook.placement.replicas.independent_nodes import MOST_ON_A_NODE, are_nodes_independent
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

Object = dict[str, Any]

HOST = "kubernetes.io/hostname"


def further(pod: PodBuilder | Object, share: int = 1, **fields: Any) -> FurtherPods:
    """Return further pods like `pod`."""
    made = pod if isinstance(pod, dict) else pod.obj()
    return FurtherPods(Scheduler(), lambda _: made, share, **fields)


def counted(pod: PodBuilder, *nodes: NodeInfo, until: int | None = None) -> Count:
    return count_each(further(pod), Snapshot.of(nodes), until)


def is_independent(pod: Object, snapshot: Snapshot) -> bool:
    return are_nodes_independent(Scheduler(), PodSignature.of(pod), snapshot)


def apart(key: str = HOST) -> Object:
    """Return anti-affinity of the pods `app: web` to each other."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _four(name: str, *running: PodBuilder, **labels: str) -> NodeInfo:
    return node(name, *running, labels=labels, capacity={"nvidia.com/gpu": "4"})


def _with_few_places(nodes: list[Object]) -> list[Object]:
    """Return nodes that run at most four pods, so that a property takes no more time than it must."""
    found = deepcopy(nodes)
    for each in found:
        amounts = each["status"]["allocatable"]
        amounts["pods"] = min(amounts.get("pods", "0"), "4", key=int)
    return found


def _snapshot(*objects: Object) -> Snapshot:
    return snapshot_from_documents(Document("cluster", each) for each in objects)


def _end(count: Count) -> tuple[str, str]:
    """Return the verdict on the first pod that does not fit, and its message."""
    return ("Unknown", count.ended_early) if count.stopped is None else (count.stopped.verdict, count.stopped.message)


@settings(max_examples=examples(120))
@given(world=clusters(), pod=pending_pods(), data=st.data())
def test_the_count_for_all_nodes_at_once_equals_the_one_by_one(
    world: tuple[list[Object], list[Object]], pod: Object, data: st.DataObject
) -> None:
    nodes, running = world
    snapshot = _snapshot(*_with_few_places(nodes), *data.draw(nominations(running)))
    assume(is_independent(pod, snapshot))

    found = count_each(further(pod), snapshot)
    plain = place_replicas(Scheduler(), snapshot, repeat(pod), 1000)

    assert (found.fits, found.nodes, found.is_complete) == (plain.placed, plain.nodes, plain.is_complete)
    assert plain.stopped is not None
    assert _end(found) == (plain.stopped.verdict, plain.stopped.message)


@settings(max_examples=examples(60))
@given(world=strategies_pods.clusters(), pod=strategies_pods.pending_pods())
def test_the_range_contains_the_count_one_by_one(
    world: tuple[list[Object], list[Object], list[Object]], pod: Object
) -> None:
    nodes, running, others = world
    snapshot = _snapshot(*_with_few_places(nodes), *running, *others)

    found = count_each(further(pod), snapshot)
    plain = place_replicas(Scheduler(), snapshot, repeat(pod), 1000)

    assert (found.fits, found.is_complete) == (plain.placed, plain.is_complete)
    assert plain.stopped is not None
    assert _end(found) == (plain.stopped.verdict, plain.stopped.message)
    if found.is_complete:
        assert found.range is not None
        assert found.range.lowest <= plain.placed <= found.range.highest
        assert not is_independent(pod, snapshot) or found.range == Range(plain.placed, plain.placed)


@settings(max_examples=examples(40))
@given(world=clusters(), pod=pending_pods(), until=st.integers(1, 6))
def test_the_count_ends_at_the_number_asked_for(
    world: tuple[list[Object], list[Object]], pod: Object, until: int
) -> None:
    nodes, running = world
    snapshot = _snapshot(*_with_few_places(nodes), *running)

    found = count_each(further(pod), snapshot, until)
    plain = place_replicas(Scheduler(), snapshot, repeat(pod), until)

    assert found.fits == plain.placed
    assert bool(found.stopped or found.ended_early) == bool(plain.stopped)
    if plain.stopped is None:
        assert found.nodes == plain.nodes


@pytest.mark.parametrize("key", [HOST, "zone"], ids=["independent nodes", "one after the other"])
def test_the_pods_of_an_object_are_counted_up_to_a_number_of_pods(key: str) -> None:
    """With others, they are counted in turns of as many pods as the object has."""
    pods = further(make_pod().label("app", "web").affinity(apart(key)), 3)

    found = count_each(pods, Snapshot.of([_four(name, zone=name) for name in "abcd"]), until=2)

    assert (found.fits, found.range and (found.range.lowest, found.range.highest)) == (2, (2, 2))


def test_pods_fill_each_node_with_what_is_left() -> None:
    found = counted(make_pod().gpu(1), _four("a"), _four("b", make_pod().gpu(3)), _four("c", make_pod().gpu(4)))

    assert (found.fits, found.nodes, found.range) == (5, {"a": 4, "b": 1}, Range(5, 5))
    assert found.stopped is not None
    assert found.stopped.message == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def test_a_host_port_is_free_once_on_a_node() -> None:
    assert counted(make_pod().host_port(80), _four("a"), _four("b")).nodes == {"a": 1, "b": 1}


def test_nodes_of_any_size_are_counted_up_to_a_limit() -> None:
    found = counted(make_pod(), node("a", capacity={"pods": "1e15"}), node("b", capacity={"pods": "7"}))

    assert found.nodes == {"a": MOST_ON_A_NODE, "b": 7}
    assert (found.is_complete, found.stopped, found.range) == (False, None, None)


@pytest.mark.parametrize("amount", [2**56, 2**62, 10**30])
def test_amounts_beyond_the_columns_do_not_overflow(amount: int) -> None:
    found = counted(make_pod().requests(memory=amount), node("a", capacity={"memory": str(2**56), "pods": "500"}))

    assert found.fits == 1


def test_pods_that_repel_each_other_take_a_node_each() -> None:
    found = counted(make_pod().label("app", "web").affinity(apart()), *map(_four, "abc"))

    assert (found.nodes, found.range and (found.range.lowest, found.range.highest)) == (
        {"a": 1, "b": 1, "c": 1},
        (3, 3),
    )


def test_pods_that_others_repel_fit_on_any_number_of_the_other_nodes() -> None:
    """The terms are those of a running pod, so further pods do not add to them."""
    web = make_pod().label("app", "web")
    nodes = [_four("a", make_pod("alone").affinity(apart())), _four("b")]

    assert is_independent(web.obj(), Snapshot.of(nodes))
    assert counted(web.gpu(1), *nodes).nodes == {"b": 4}


def test_terms_of_nominated_pods_make_nodes_depend_on_each_other() -> None:
    kept = make_pod("kept").affinity(apart()).status(phase="Pending", nominatedNodeName="a")
    nodes = [make_node_object(name) for name in "ab"]

    assert not is_independent(make_pod().obj(), _snapshot(*nodes, kept.obj()))
    assert is_independent(make_pod().obj(), _snapshot(*nodes, make_pod("kept").node_name("a").obj()))


@pytest.mark.parametrize(
    ("claim", "is_shared"),
    [
        (make_pvc("data", volume="pv", accessModes=["ReadWriteMany"]), True),
        (make_pvc("data", volume="pv", accessModes=["ReadWriteOncePod"]), False),
        (make_pvc("data", "fast"), False),
    ],
    ids=["bound", "of one pod", "not bound"],
)
def test_bound_claims_are_shared_by_further_pods(claim: Object, is_shared: bool) -> None:
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": "4"}) for name in "ab"]
    snapshot = _snapshot(*nodes, claim, make_pv("pv"), make_storage_class("fast"))
    pod = make_pod().gpu(1).spec(volumes=uses("data"))

    found, plain = count_each(further(pod), snapshot), place_replicas(Scheduler(), snapshot, repeat(pod.obj()), 100)

    assert is_independent(pod.obj(), snapshot) is is_shared
    assert (found.fits, found.is_complete) == (plain.placed, plain.is_complete)
    assert (found.fits == 8) is is_shared


@pytest.mark.slow
def test_a_choice_that_decides_the_count_gives_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal scores, the node alone in its zone leaves room for two more pods, the other one for one."""
    web = (
        make_pod()
        .label("app", "web")
        .affinity(
            {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
                    ]
                }
            }
        )
    )
    nodes = [_four("a", zone="1"), _four("b", zone="2"), _four("c", zone="2")]

    found = counted(web.gpu(4), *nodes)
    monkeypatch.setattr(counting, "_MOST_RUNS", 1)
    once = counted(web.gpu(4), *nodes)

    assert (found.fits, found.range and (found.range.lowest, found.range.highest)) == (1, (1, 2))
    # The one random run places two.
    assert (once.fits, once.range) == (1, Range(1, 2, 2))


@pytest.mark.parametrize(
    ("used", "spent_after", "runs", "expected"),
    [(4, 9, 1, Range(1, 1)), (0, 9, 3, Range(1, 1, 4)), (0, 1, 2, None)],
    ids=["no choice", "a choice", "time is up"],
)
def test_random_runs_are_those_that_can_matter(
    used: int, spent_after: int, runs: int, expected: Range | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a choice, one run decides. A range by a part of the runs would be too narrow."""
    web, seeds = make_pod().label("app", "web").affinity(apart("zone")).gpu(1), list[int]()

    def run(pods: Sequence[FurtherPods], snapshot: Snapshot, turns: int | None, seed: int) -> RandomRun:
        seeds.append(seed)
        if len(seeds) > spent_after:
            raise BudgetSpentError(1)
        return random_run(pods, snapshot, turns, seed)

    monkeypatch.setattr(counting, "_MOST_RUNS", 3)
    monkeypatch.setattr(counting, "random_run", run)

    found = counted(web, _four("a", zone="1"), _four("b", make_pod().gpu(used), zone="1"))

    assert (found.fits, found.range, len(seeds)) == (1, expected, runs)


def test_devices_are_counted_for_one_pod_alone() -> None:
    pod = make_pod().requests(**{"deviceclass.resource.kubernetes.io/card": 1})
    capacity = {"deviceclass.resource.kubernetes.io/card": "4"}

    found = counted(pod, node("a", capacity=capacity))

    assert found.fits <= 1
    assert not (found.is_complete and found.stopped is None)


def test_the_nomination_of_a_stored_pod_does_not_count() -> None:
    stored = make_pod().gpu(1).status(nominatedNodeName="a", phase="Pending")

    assert counted(stored, _four("a"), _four("b")).nodes == {"a": 4, "b": 4}


@pytest.mark.slow
def test_several_pods_take_turns_in_proportion() -> None:
    pods = (further(make_pod("launcher").requests(cpu="100m"), 1), further(make_pod("worker").gpu(1), 3))

    launcher, worker = count_together(pods, Snapshot.of([_four("a"), _four("b")]))

    assert (launcher.fits, worker.fits) == (3, 8)
    assert (launcher.stopped, launcher.stopped_at) == (worker.stopped, 1)


@pytest.mark.slow
def test_turns_end_at_the_number_asked_for() -> None:
    pods = (further(make_pod("launcher").requests(cpu="100m"), 1), further(make_pod("worker").gpu(1), 3))

    counts = count_together(pods, Snapshot.of([_four("a"), _four("b")]), 2)

    assert [(each.fits, each.stopped, each.is_complete) for each in counts] == [(2, None, True), (6, None, True)]


@pytest.mark.slow
def test_the_packing_of_several_pods_is_a_range() -> None:
    """A small pod and a large one in turn: kube-scheduler spreads the small ones, at random between equal nodes."""
    small, large = further(make_pod("small").gpu(1)), further(make_pod("large").gpu(3))

    counts = count_together((small, large), Snapshot.of([_four("a"), _four("b")]))

    assert all(each.range and each.range.lowest <= each.fits <= each.range.highest for each in counts)


def _zones() -> Snapshot:
    """Return three nodes in two zones."""
    return Snapshot.of([_four("a", zone="1"), _four("b", zone="2"), _four("c", zone="2")])


def test_pods_that_repel_each_other_in_a_zone_are_placed_one_after_the_other() -> None:
    pod = make_pod().label("app", "web").affinity(apart("zone"))

    assert not is_independent(pod.obj(), _zones())
    assert (found := count_each(further(pod), _zones())).fits == 2
    assert found.range is not None
    assert (found.range.lowest, found.range.highest) == (2, 2)


def test_progress_is_reported_for_each_placed_pod() -> None:
    reported: list[int] = []

    count_each(further(make_pod().label("app", "web").affinity(apart("zone"))), _zones(), None, reported.append)

    assert reported == [1, 2]


def test_the_pods_that_can_be_made_are_a_lower_bound() -> None:
    pods = further(make_pod().label("app", "web").affinity(apart("zone")), most=1)

    found = count_each(pods, _zones())

    assert (found.fits, found.is_complete, found.stopped, found.range) == (1, False, None, None)
    # Also where nodes are independent of each other.
    alone = count_each(further(make_pod().gpu(1), most=1), _zones(), until=2)
    assert (alone.fits, alone.is_complete, alone.range) == (1, False, None)


def test_a_pod_that_fits_nowhere_has_its_message() -> None:
    found = counted(make_pod().gpu(5), _four("a"))

    assert (found.fits, found.nodes, found.range) == (0, {}, Range(0, 0))
    assert found.stopped is not None
    assert found.stopped.verdict == "Infeasible"
