"""The order of the pods of a node, and of the nodes."""

from dataclasses import replace

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, TWO_CARDS, budget, preempting, running, victims
from webhook.kube.selectors import exact_selector


def test_of_equal_pods_only_the_number_is_known() -> None:
    found = preempting(make_pod().gpu(4), node("n", *(running(f"p{at}", 1, 2) for at in range(4)), capacity=ROOM))
    assert (found.nodes, found.least, found.most, len(found.victims)) == (("n",), 2, 2, 4)
    assert not found.is_exact
    assert found.why == "2 of these 4: they are equal to kube-scheduler"
    assert found.message == "preemption: found a potential placement for pod on node n, preempting 2 victims"


def test_equal_pods_of_different_sizes_are_tried_in_every_order() -> None:
    pods = running("one", 1, 1), running("three", 1, 3), running("four", 1, 4)
    found = preempting(make_pod().gpu(4), node("n", *pods, capacity=ROOM))
    assert (found.least, found.most, found.is_exact) == (1, 2, False)
    assert {each.name for each in found.victims} == {"one", "three", "four"}


def test_pods_that_another_order_of_more_important_ones_divides_are_tried_in_every_order() -> None:
    # Besides `three`, both `one` and `two` can stay, and besides `four` one of them.
    pods = running("three", 2, 3), running("four", 2, 4), running("one", 1, 1), running("two", 1, 2)
    found = preempting(make_pod().gpu(4), node("n", *pods, capacity=ROOM | {"nvidia.com/gpu": "10"}))
    assert (found.least, found.most, found.is_exact) == (1, 2, False)
    assert {each.name for each in found.victims} == {"four", "three", "one", "two"}


def test_equal_pods_stay_tied_before_pods_of_different_sizes() -> None:
    pods = running("x", 2, 2), running("y", 2, 2), running("one", 1, 1), running("two", 1, 2)
    found = preempting(make_pod().gpu(4), node("n", *pods, capacity=ROOM | {"nvidia.com/gpu": "7"}))
    assert (found.least, found.most, found.is_exact) == (2, 2, False)
    assert {each.name for each in found.victims} == {"x", "y", "two"}


@pytest.mark.parametrize(
    ("of_a", "of_b", "chosen"),
    [
        pytest.param([running("x", 9, 2)], [running("y", 8, 2)], "b", id="the lower of the highest priorities"),
        pytest.param([running("x", 5, 1), running("y", 1, 1)], [running("z", 5, 2)], "b", id="fewer pods"),
        pytest.param(
            [running("x", 5, 1), running("y", 4, 1)], [running("z", 5, 1), running("w", 1, 1)], "b", id="the sum"
        ),
        pytest.param([running("x", -5, 2)], [running("y", -9, 1), running("z", -9, 1)], "b", id="negative priorities"),
        pytest.param(
            [running("x", 1, 2, "2026-01-01T00:00:00Z")],
            [running("y", 1, 2, "2026-01-02T00:00:00Z")],
            "b",
            id="the later",
        ),
        pytest.param(
            [running("x", 5, 1, "2026-01-01T00:00:00Z"), running("y", 1, 1, "2026-01-03T00:00:00Z")],
            [running("z", 5, 1, "2026-01-02T00:00:00Z"), running("w", 1, 1, "2025-01-01T00:00:00Z")],
            "b",
            id="the later of those with the highest priority",
        ),
        pytest.param([running("x", 1, 2, "2026-01-01T00:00:00Z")], [running("y", 1, 2)], "b", id="not started"),
    ],
)
def test_the_node_is_chosen_by_its_victims(of_a: list[PodBuilder], of_b: list[PodBuilder], chosen: str) -> None:
    found = preempting(make_pod().gpu(2), node("a", *of_a, capacity=TWO_CARDS), node("b", *of_b, capacity=TWO_CARDS))
    assert (found.nodes, found.is_exact) == ((chosen,), True)


def test_a_node_without_violations_of_budgets_is_chosen() -> None:
    guarded, free = running("guarded", 1, 2).label("app", "web"), running("free", 9, 2)
    nodes = node("a", guarded, capacity=TWO_CARDS), node("b", free, capacity=TWO_CARDS)
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(0),)) == ["free"]
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(1),)) == ["guarded"]
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(0, disrupted=frozenset(("guarded",))),)) == ["guarded"]


def test_a_pod_of_a_spent_budget_stays_before_more_important_ones() -> None:
    guarded, free = running("guarded", 1, 1).label("app", "web"), running("free", 9, 1)
    found = preempting(make_pod().gpu(1), node("a", guarded, free, capacity=TWO_CARDS), budgets=(budget(0),))
    assert [each.name for each in found.victims] == ["free"]
    assert found.violates == ()
    both = preempting(make_pod().gpu(2), node("a", guarded, free, capacity=TWO_CARDS), budgets=(budget(0),))
    assert (both.violates, both.to_json()["victims"]) == (("default/web",), ["default/free", "default/guarded"])


def test_many_equally_important_pods_of_different_sizes_leave_the_choice_open() -> None:
    cards = {"nvidia.com/gpu": "400", "cpu": "8", "pods": "300"}
    pods = [running(f"p{at:03}", 1, 1 + at % 3) for at in range(200)]
    found = preempting(make_pod().gpu(8), node("n", *pods, capacity=cards))
    assert (found.nodes, found.is_exact, found.message) == (("n",), False, "")
    assert found.least == 1
    assert found.most >= 8
    assert len(found.victims) == 200
    assert found.why == "equally important pods, or budgets of one pod, are in more orders than are tried"


def test_open_choice_names_the_pods_that_depend_on_what_it_leaves() -> None:
    sizes = [1, 1, 1, 1, 3, 2, 2, 2, 2]
    pods = [running(f"a{at}", 2, size) for at, size in enumerate(sizes)]
    room = {"nvidia.com/gpu": "20", "cpu": "8", "pods": "30"}

    found = preempting(make_pod().gpu(8), node("n", *pods, running("low", 1, 1), capacity=room))

    assert "low" in [each.name for each in found.victims]
    assert found.most == 10


def test_pods_that_differ_in_what_is_not_short_are_equal() -> None:
    pods = [running(f"p{at}", 1, 1).requests(cpu=f"{at + 1}m", **{"nvidia.com/gpu": "1"}) for at in range(6)]
    idle = [running(f"idle{at}", 1) for at in range(4)]
    room = ROOM | {"nvidia.com/gpu": "6", "pods": "20"}
    found = preempting(make_pod().gpu(2), node("n", *pods, *idle, capacity=room))
    assert (found.least, found.most, len(found.victims)) == (2, 2, 6)
    assert found.message == "preemption: found a potential placement for pod on node n, preempting 2 victims"


def test_a_node_with_open_victims_cannot_win_against_lower_priorities() -> None:
    low = node("a", running("low", 1, 2), capacity=TWO_CARDS)
    odd = [running(f"p{at}", 50, 1 + at % 3) for at in range(9)]
    found = preempting(make_pod().gpu(2), low, node("b", *odd, capacity={"nvidia.com/gpu": "18", "pods": "20"}))
    assert (found.nodes, found.is_exact) == (("a",), True)


def test_budgets_of_other_namespaces_violate_nothing() -> None:
    other = replace(budget(0), namespace="other")
    info = node("a", running("web", 1, 2).label("app", "web"), capacity=TWO_CARDS)
    assert preempting(make_pod().gpu(2), info, budgets=(other,)).violates == ()


def test_equal_pods_of_one_budget_are_equal_whichever_of_them_violates_it() -> None:
    pods = [running(f"web{at}", 1, 1).label("app", "web") for at in range(6)]
    info = node("n", *pods, capacity=ROOM | {"nvidia.com/gpu": "6"})
    found = preempting(make_pod().gpu(3), info, budgets=(budget(2),))
    assert (found.least, found.most, len(found.victims), found.violates) == (3, 3, 6, ("default/web",))
    assert found.message == "preemption: found a potential placement for pod on node n, preempting 3 victims"


def test_budgets_of_one_pod_are_in_random_order_and_leave_the_choice_open() -> None:
    both = running("both", 3, 1).label("app", "web").label("tier", "1")
    info = node(
        "n",
        running("free", 4, 1),
        both,
        running("tier", 2, 1).label("tier", "1"),
        capacity=ROOM | {"nvidia.com/gpu": "3"},
    )
    tier = replace(budget(1), name="tier", selector=exact_selector({"tier": "1"}))

    # The eviction of `both` violates `web`, and uses `tier` if that comes first.
    found = preempting(make_pod().gpu(1), info, budgets=(budget(0), tier))

    assert not found.is_exact
    assert {"free", "tier"} <= {each.name for each in found.victims}
    assert found.why == "equally important pods, or budgets of one pod, are in more orders than are tried"
    assert victims(make_pod().gpu(1), info, budgets=(budget(0), replace(tier, disruptions_allowed=2))) == ["tier"]


def test_a_pod_that_violates_a_budget_can_use_another_before_equally_important_pods() -> None:
    both = running("both", 2, 3).label("app", "web").label("tier", "1")
    pods = running("tier", 2, 1).label("tier", "1"), both, running("web", 1, 1).label("app", "web")
    tier = replace(budget(1), name="tier", selector=exact_selector({"tier": "1"}))

    # If `both` and its budget `tier` come first, the eviction of the pod `tier` violates it, and `tier` stays.
    found = preempting(
        make_pod().gpu(4), node("n", *pods, capacity=ROOM | {"nvidia.com/gpu": "5"}), budgets=(budget(0), tier)
    )

    assert not found.is_exact
    assert {each.name for each in found.victims} == {"both", "tier", "web"}


def test_equal_pods_with_the_same_victims_can_violate_fewer_budgets() -> None:
    """The evicted pod uses what is left of the budget if it comes before its equal, and else violates it."""
    large, small = (running(f"p{cards}", 1, cards).label("app", "web") for cards in (2, 1))
    cards = TWO_CARDS | {"nvidia.com/gpu": "3"}
    other = node("b", running("other", 2, 2), capacity=TWO_CARDS)
    for pods in ((large, small), (small, large)):
        here = node("a", *pods, capacity=cards)
        assert victims(make_pod().gpu(2), here, budgets=(budget(1),)) == ["p2"]
        assert preempting(make_pod().gpu(2), here, other, budgets=(budget(1),)).nodes == ("a", "b")


def test_budgets_of_one_pod_can_matter_in_one_order_of_equal_pods_only() -> None:
    """`tier` violates its own budget. Only before `web` can it use what that pod has left."""
    tier = running("tier", 1, 1).label("app", "web").label("tier", "1")
    pods = running("free", 2, 1), running("web", 1, 1).label("app", "web")
    own = replace(budget(0), name="tier", selector=exact_selector({"tier": "1"}))
    info = node("n", *pods, tier, capacity=ROOM | {"nvidia.com/gpu": "3"})

    assert not preempting(make_pod().gpu(1), info, budgets=(budget(1), own)).is_exact
