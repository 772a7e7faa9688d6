"""Assumed pods are shown as running to the pods that come after them, and to no others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from tests.support.views import said
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.index.layered_pod_classes import LayeredPodClasses
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.documents import Document
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods, chosen_node, tied_nodes, with_ties
from webhook.placement.waiting.pending_placement import WaitingPod, assume


def _base(*more: NodeInfo) -> Snapshot:
    nodes = (node(name, make_pod(f"runs-on-{name}").gpu(1), capacity={"nvidia.com/gpu": "8"}) for name in "abc")
    return Snapshot.of((*nodes, *more))


def _assumed(name: str, on: str, priority: int = 0, pod: PodBuilder | None = None) -> AssumedPod:
    content = (pod or make_pod(name).gpu(2)).namespace("x").label("app", name).obj()
    content["metadata"]["name"] = name
    return AssumedPod(RunningPod.of(content)._replace(node_name=on), priority)


def _gpus(snapshot: Snapshot) -> list[int]:
    return [int(amount) for amount in snapshot.requested("nvidia.com/gpu")]


def test_without_assumed_pods_the_nodes_are_those_of_the_cluster() -> None:
    base = _base()
    assert said(AssumedPods[int](base).before(0)) == said(base)


def test_a_pod_sees_those_of_its_own_and_of_a_higher_priority() -> None:
    found = AssumedPods(_base(), {1: _assumed("p", "a", 0), 2: _assumed("q", "b", 10)})
    assert {priority: _gpus(found.before(priority)) for priority in (-1, 0, 1, 10, 11)} == {
        -1: [3, 3, 1],
        0: [3, 3, 1],
        1: [1, 3, 1],
        10: [1, 3, 1],
        11: [1, 1, 1],
    }


def test_a_pod_that_is_assumed_again_leaves_its_first_node() -> None:
    found = AssumedPods(_base(), {1: _assumed("p", "a")})
    assert _gpus(found.before(0)) == [3, 1, 1]
    found.assume(1, _assumed("p", "b"))
    assert (_gpus(found.before(0)), found.count_before(0), [*found.keys_on("a")]) == ([1, 3, 1], 1, [])


def test_the_priority_of_a_class_is_that_of_the_newest_view() -> None:
    def view(value: int) -> Snapshot:
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        return snapshot_from_documents([Document("the test", high | {"value": value})])

    preemption = PodSignature.of(make_pod().spec(priorityClassName="high").obj()).info.preemption
    found = AssumedPods[int](view(10))
    assert found.priority_of(preemption) == 10
    found.follow(view(20))
    assert found.priority_of(preemption) == 20


def test_a_pod_on_a_node_with_other_facts_is_placed_again_though_it_has_room() -> None:
    before, tainted = _base(), node("a", taints=["k:NoSchedule"], capacity={"nvidia.com/gpu": "8"})
    found = AssumedPods(before, {1: _assumed("p", "a"), 2: _assumed("q", "b")})
    found.follow(updated(before, [tainted], before.generation + 1))
    assert found.without_room_since(before) == [1]


def test_assumed_pods_on_a_node_that_is_gone_are_left_out() -> None:
    found = AssumedPods(_base(), {1: _assumed("p", "a"), 2: _assumed("q", "c")})
    smaller = Snapshot.of([info for info in _base().nodes if info.node.name != "a"])
    assert found.on(smaller).by_key.keys() == {2}


def test_room_is_counted_with_all_reserved_pods() -> None:
    found = AssumedPods(_base(), {number: _assumed(f"p{number}", "a") for number in range(3)})
    assert found.has_room("a")
    assert not found.has_room("a", _assumed("q", "a").pod)
    assert found.has_room("b", _assumed("q", "b").pod)


def test_room_for_pods_ends_with_the_number_of_pods() -> None:
    small = node("small", capacity={"pods": "1"})
    found = AssumedPods(_base(small), {1: _assumed("p", "small", pod=make_pod())})
    assert found.has_room("small")
    assert not found.has_room("small", _assumed("q", "small", pod=make_pod()).pod)


def test_a_resource_that_the_reserved_pods_do_not_request_does_not_matter() -> None:
    overcommitted = node("full", make_pod("huge").requests(memory="10Ti"), capacity={"memory": "1Ti"})
    found = AssumedPods(_base(overcommitted), {1: _assumed("p", "full", pod=make_pod().requests(cpu="1"))})
    assert found.has_room("full")
    # But a pod that requests it has no room.
    asks = {name: _assumed("q", "full", pod=make_pod().requests(**{name: "1"})).pod for name in ("cpu", "memory")}
    assert (found.has_room("full", asks["cpu"]), found.has_room("full", asks["memory"])) == (True, False)


def test_pods_of_a_lower_priority_come_after() -> None:
    found = AssumedPods(_base(), {1: _assumed("p", "a", 0), 2: _assumed("q", "a", 5)})
    assert found.after_on_node("a", 5) == (1,)
    assert found.after_on_node("a", 0) == ()
    assert found.after_on_node("b", 9) == ()


@pytest.mark.slow
def test_pods_that_never_run_leave_no_class_in_the_snapshot_and_few_in_their_own() -> None:
    found: AssumedPods[int] = AssumedPods(_base())
    for number in range(2500):
        found.forget((number - 1,))
        found.assume(number, _assumed(f"p{number}", "a"))
        found.before(0)
    assert len(found.base.pods.classes) == len(_base().pods.classes)
    classes = found.before(0).pods.classes
    assert isinstance(classes, LayeredPodClasses)
    assert classes.own_count <= 1001


@pytest.mark.slow
def test_the_log_of_changes_is_bounded() -> None:
    found: AssumedPods[int] = AssumedPods(_base())
    for number in range(5000):
        found.forget((number - 1,))
        found.assume(number, _assumed("p", "a"))
        found.before(0)
    log = found.before(0).log
    assert len(log.changes) <= 4096
    assert (log.since(0), log.since(log.position)) == (None, [])


@pytest.mark.slow
def test_snapshots_of_many_priorities_are_bounded() -> None:
    reserved = {number: _assumed(f"p{number}", "a", number) for number in range(100)}
    found = AssumedPods(_base(), reserved)
    first = [found.before(number) for number in range(100)]
    assert sum(found.before(number) is snapshot for number, snapshot in enumerate(first)) <= 16


_ASSUMED = st.builds(
    _assumed,
    st.sampled_from(("p", "q", "r")),
    st.sampled_from("abc"),
    st.sampled_from((0, 5, 10)),
    st.sampled_from((None, make_pod().requests(cpu="1"), make_pod().host_port(80))),
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 5), _ASSUMED),
        st.tuples(st.just("drop"), st.integers(0, 5), st.none()),
        st.tuples(st.just("look"), st.sampled_from((0, 5, 10)), st.none()),
        st.tuples(st.just("move on"), st.integers(0, 2), st.none()),
    ),
    max_size=10,
)


@given(_STEPS)
def test_a_snapshot_that_is_kept_current_equals_one_made_from_scratch(
    steps: list[tuple[str, int, AssumedPod | None]],
) -> None:
    first = _base()
    changed = first.nodes[0].with_pods([_assumed("runs", "a").pod])
    bases = (first, _base(node("d")), updated(first, [changed], 2))
    found: AssumedPods[int] = AssumedPods(bases[0])
    for step, number, assumed in steps:
        if step == "add" and assumed is not None:
            found.assume(number, assumed)
        elif step == "drop":
            found.forget((number,))
        elif step == "look":
            found.before(number)
        elif step == "move on":
            found.follow(bases[number])
    for priority in (0, 5, 10):
        assert said(found.before(priority)) == said(found.copy().before(priority))
        by_hand = [
            info.with_pods(
                [
                    each.pod
                    for each in found.by_key.values()
                    if each.pod.node_name == info.node.name and each.priority >= priority
                ]
            )
            for info in found.base.nodes
        ]
        assert _gpus(found.before(priority)) == _gpus(Snapshot.of(by_hand))


@given(_STEPS)
def test_the_log_states_every_change_of_the_rows(steps: list[tuple[str, int, AssumedPod | None]]) -> None:
    first = _base()
    changed = first.nodes[0].with_pods([_assumed("runs", "a").pod])
    bases = (first, updated(first, [changed], 2))
    found: AssumedPods[int] = AssumedPods(first)
    before = found.before(0)
    log, pods = before.log, {row: [*info.pods] for row, info in enumerate(before.nodes)}
    for step, number, assumed in steps:
        if step == "add" and assumed is not None:
            found.assume(number, replace(assumed, priority=0))
        elif step == "drop":
            found.forget((number,))
        elif step == "move on":
            found.follow(bases[number % 2])
    after = found.before(0)
    if after.log is log:
        for row, sign, _, pod in log.changes:
            if sign < 0:
                pods[row].remove(next(each for each in pods[row] if each.is_same_load(pod)))
            else:
                pods[row].append(pod)
        for row, info in enumerate(after.nodes):
            loads = [[(each.labels, each.requests) for each in side] for side in (pods[row], info.pods)]
            assert all(loads[0].count(each) == loads[1].count(each) for each in loads[0] + loads[1])


def test_a_pod_that_is_bound_where_it_was_assumed_changes_no_row() -> None:
    base, assumed = _base(), _assumed("p", "a")
    found = AssumedPods(base, {1: assumed})
    log = found.before(0).log
    bound = updated(base, [base.nodes[0].with_pods([assumed.pod._replace(name="p-bound")])], 2)

    found.follow(bound, [1])

    assert found.before(0).log is log
    assert (len(found), log.changes) == (0, [])
    assert _gpus(found.before(0)) == _gpus(bound) == [3, 1, 1]
    assert found.before(0).nodes[0].pods[-1].name == "p-bound"


def test_a_pod_that_is_bound_elsewhere_changes_both_rows() -> None:
    base, assumed = _base(), _assumed("p", "a")
    found = AssumedPods(base, {1: assumed})
    log = found.before(0).log

    found.follow(updated(base, [base.nodes[1].with_pods([assumed.pod._replace(node_name="b")])], 2), [1])

    assert sorted((each.row, each.sign) for each in log.changes) == [(0, -1), (1, 1)]
    assert _gpus(found.before(0)) == [1, 3, 1]


@pytest.mark.parametrize("count", [1, 7])
def test_pods_are_spread_over_the_best_nodes_and_each_keeps_its_own(count: int) -> None:
    snapshot = Snapshot.of([node(f"n{number}") for number in range(count)])
    placement = Scheduler().place(make_pod().obj(), snapshot)
    chosen = [chosen_node(placement, snapshot, f"x/p{number}") for number in range(200)]
    assert set(chosen) == {f"n{number}" for number in range(count)}
    assert chosen == [chosen_node(placement, snapshot, f"x/p{number}") for number in range(200)]


def test_only_nodes_with_the_best_score_are_chosen() -> None:
    snapshot = Snapshot.of([node("a"), node("b"), node("used", make_pod("other").requests(cpu="32", memory="256Gi"))])
    placement = Scheduler().place(make_pod().requests(cpu="1", memory="1Gi").obj(), snapshot)
    assert {chosen_node(placement, snapshot, str(number)) for number in range(50)} == {"a", "b"}


def test_a_pod_without_a_node_keeps_none() -> None:
    placement = Placement("Waiting", None, 3, 0, "0/3 nodes are available.")
    assert chosen_node(placement, _base(), "x/p") is None


@pytest.mark.parametrize(("sampled", "others", "is_mostly"), [(0, 0, False), (1, 1, False), (2, 1, True), (1, 0, True)])
def test_most_pods_are_sampled_if_more_than_half_are(sampled: int, others: int, *, is_mostly: bool) -> None:
    found: AssumedPods[int] = AssumedPods(_base())
    for number in range(sampled + others):
        found.assume(number, replace(_assumed(f"p{number}", "a"), is_sampled=number < sampled))

    assert found.is_mostly_sampled is is_mostly
    found.forget(range(sampled + others))
    assert not found.is_mostly_sampled


@pytest.mark.parametrize(("cards", "has_room"), [(7, True), (8, False)])
def test_node_has_no_room_if_the_pods_that_are_assumed_there_have_none(cards: int, *, has_room: bool) -> None:
    found: AssumedPods[int] = AssumedPods(_base())
    found.assume(1, _assumed("p", "a", pod=make_pod("p").gpu(cards)))
    asks_for_nothing = RunningPod.of(make_pod("q").obj())

    assert found.has_room("a") is has_room
    assert found.has_room("a", asks_for_nothing) is has_room
    assert not found.has_room("gone")


@pytest.mark.parametrize(("feasible", "is_sampled"), [(2, False), (99, False), (100, False), (101, True)])
def test_of_more_nodes_than_are_always_scored_the_pick_cannot_be_predicted(feasible: int, *, is_sampled: bool) -> None:
    base = _base()
    placement = Placement("Feasible", "a", 200, feasible, "", best_rows=np.array([0, 1]))
    found: AssumedPods[int] = AssumedPods(base)

    assume(1, WaitingPod.of(make_pod().gpu(1).obj()), placement, found)

    tied = frozenset() if is_sampled else frozenset({"a", "b"})
    assert tied_nodes(placement, base) == tied
    assert (found.by_key[1].tied, found.by_key[1].is_sampled) == (tied, is_sampled)
    assert found.is_mostly_sampled is is_sampled


@given(
    st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=3), max_size=6), st.frozensets(st.sampled_from("abc"))
)
def test_nodes_are_tied_with_all_that_a_chain_of_pods_ties_to_them(
    ties: list[frozenset[str]], nodes: frozenset[str]
) -> None:
    pods = {number: replace(_assumed(f"p{number}", "a"), tied=tied) for number, tied in enumerate(ties)}
    found = with_ties(nodes, AssumedPods(_base(), pods))
    reached = {*nodes}
    for _ in ties:
        reached |= {each for tied in ties if tied & reached for each in tied}
    assert found == reached


def test_a_pod_that_is_forgotten_ties_no_nodes() -> None:
    found = AssumedPods(_base(), {n: replace(_assumed(f"p{n}", "a"), tied=frozenset({"a", "b"})) for n in (1, 2)})
    found.forget([1])
    assert with_ties(frozenset({"a"}), found) == {"a", "b"}
    found.forget([2])
    assert with_ties(frozenset({"a"}), found) == {"a"}
