"""The choice among the possible outcomes of each node, and the texts about what decides it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, pod_info
from tests.support.preemption import TWO_CARDS, running
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.preemption.choice import choose
from webhook.placement.preemption.victims import Candidate, Cost
from webhook.placement.profiles.profile import DEFAULT, UnmodelledStep

PODS = {name: RunningPod.of(running(name, 1, 2).obj()) for name in "abcde"}
SNAPSHOT = Snapshot.of([node(name, running(name, 1, 2), capacity=TWO_CARDS) for name in "xyz"], disruption_budgets=())


def outcome(on: str, names: str, *, violations: int = 0, priority: int = 1, tied: str = "") -> Candidate:
    """Return the eviction of the pods `names`, of `priority` at most."""
    cost: Cost = (violations, priority, len(names) * (2**31 + priority), len(names), 0)
    violates = ("default/web",) if violations else ()
    return Candidate(on, tuple(PODS[each] for each in names), violates, cost, tuple(PODS[each] for each in tied))


def chosen(*found: Sequence[Candidate], extender: str = "", resource: str = "") -> PredictedPreemption:
    steps = (UnmodelledStep(extender, frozenset({resource} - {""})),) if extender else ()
    pod = pod_info(make_pod().gpu(2).spec(priority=100)).normalized_for(SNAPSHOT)
    return choose(replace(DEFAULT, preempting_extenders=steps), pod, SNAPSHOT, found)


def names(found: PredictedPreemption) -> tuple[str, ...]:
    return tuple(each.name for each in found.victims)


@pytest.mark.parametrize(
    ("found", "nodes", "victims", "first"),
    [
        pytest.param([[outcome("x", "ab")], [outcome("y", "c")]], ("y",), ("c",), "c", id="fewer victims"),
        pytest.param(
            [[outcome("x", "a", violations=1)], [outcome("y", "bc")]], ("y",), ("b", "c"), "bc", id="no violation"
        ),
        pytest.param(
            [[outcome("x", "a", priority=2)], [outcome("y", "bc")]], ("y",), ("b", "c"), "bc", id="a lower priority"
        ),
        pytest.param([[outcome("x", "a")], [outcome("y", "b")]], ("x", "y"), ("a", "b"), "a", id="equal nodes"),
        pytest.param(
            [[outcome("x", "ab"), outcome("x", "c")]],
            ("x",),
            ("c", "a", "b"),
            "c",
            id="outcomes of one node, cheapest first",
        ),
        pytest.param(
            [[outcome("x", "ab"), outcome("x", "cde")], [outcome("y", "a"), outcome("y", "bc")]],
            ("y", "x"),
            ("a", "b", "c"),
            "a",
            id="the other node wins only with its best outcome",
        ),
        pytest.param(
            [[outcome("x", "abc")], [outcome("y", "d"), outcome("y", "ab")]],
            ("y",),
            ("d", "a", "b"),
            "d",
            id="the other node is worse than the worst outcome",
        ),
    ],
)
def test_outcomes_that_can_win_are_possible_the_cheapest_first(
    found: list[list[Candidate]], nodes: tuple[str, ...], victims: tuple[str, ...], first: str
) -> None:
    preemption = chosen(*found)

    assert (preemption.nodes, set(names(preemption))) == (nodes, set(victims))
    assert "".join(each.name for each in preemption.chosen) == first
    assert (preemption.least, preemption.most) == (len(first), max(len(first), preemption.most))
    assert preemption.candidates == len(found)
    assert preemption.is_exact is (len(nodes) == 1 and len({len(names(preemption)), len(first)}) == 1)


def test_only_what_the_possible_outcomes_violate_is_named() -> None:
    found = chosen([outcome("x", "a", violations=1)], [outcome("y", "b")])
    assert (found.nodes, found.violates) == (("y",), ())
    assert chosen([outcome("x", "a", violations=1)]).violates == ("default/web",)


def test_an_extender_chooses_among_all_nodes_if_it_manages_a_resource_of_the_pod() -> None:
    outcomes = [outcome("x", "ab")], [outcome("y", "c")]

    asked = chosen(*outcomes, extender="extender e", resource="nvidia.com/gpu")
    other = chosen(*outcomes, extender="extender e", resource="amd.com/gpu")

    assert (asked.nodes, asked.is_exact, asked.message) == (("y", "x"), False, "")
    assert (asked.least, asked.most, asked.why) == (1, 2, "extender e can choose among 2 nodes")
    assert (other.nodes, other.is_exact) == (("y",), True)


def test_pods_that_are_tied_with_victims_are_possible_but_not_chosen() -> None:
    found = chosen([outcome("x", "a", tied="bc")])

    assert (names(found), [each.name for each in found.chosen]) == (("a", "b", "c"), ["a"])
    assert (found.least, found.most, found.is_exact) == (1, 1, False)
    assert found.why == "1 of these 3: they are equal to kube-scheduler"


@pytest.mark.parametrize("is_open_first", [True, False])
def test_a_node_with_more_orders_than_are_tried_can_evict_one_pod_or_all(*, is_open_first: bool) -> None:
    more = outcome("x", "abc", tied="d")._replace(is_open=True)
    found = [[more], [outcome("y", "e")]]

    preemption = chosen(*(found if is_open_first else found[::-1]))

    assert (preemption.nodes, preemption.least, preemption.most) == (("y", "x"), 1, 4)
    assert set(names(preemption)) == set("abcde")
    assert (preemption.is_exact, preemption.message) == (False, "")
    assert preemption.why.startswith("equally important pods, or budgets of one pod, are in more orders")
