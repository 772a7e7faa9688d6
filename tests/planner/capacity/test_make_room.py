"""The fewest pods to move so that a pending pod fits."""

from typing import Any

import pytest

from placement_planner.capacity import make_room, proof
from placement_planner.capacity.make_room import Room
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.devices import claiming
from tests.support.objects.moves import budget, cards, room_for, running
from webhook.kube.pod.taints import UNSCHEDULABLE

BIG = make_pod("big").gpu(8)
FRAGMENTED = [
    cards("a", 8),
    cards("b", 8),
    cards("c", 8),
    *(running(f"a{n}", "a", 2) for n in range(3)),
    *(running(f"b{n}", "b", 3) for n in range(2)),
    running("c0", "c", 4),
]


def _repelling(key: str) -> dict[str, Any]:
    """Return anti-affinity to the pods of `running`."""
    term = {"labelSelector": {"matchLabels": {"app": "app"}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart(name: str) -> PodBuilder:
    """Return a pod with two cards and anti-affinity to others of its kind on a node."""
    affinity = _repelling("kubernetes.io/hostname")
    return make_pod(name).gpu(2).affinity(affinity).namespace("team-a").label("app", "app")


def moves(found: Room) -> list[tuple[str, str]]:
    assert found.plan is not None
    return [(move.pod.name, move.target) for move in found.plan.moves]


def test_the_fewest_pods_are_moved() -> None:
    objects = [cards("a", 8), cards("b", 8), running("a0", "a", 2), running("a1", "a", 2), running("b0", "b", 4)]

    found = room_for(BIG, objects)

    assert found.verdict == "Moves"
    assert moves(found) == [("b0", "a")]
    assert found.plan is not None
    assert (found.plan.node, found.plan.chosen) == ("b", "b")


def test_a_pod_that_fits_needs_no_move() -> None:
    found = room_for(make_pod("small").gpu(2), FRAGMENTED)

    assert (found.verdict, found.plan) == ("Fits", None)


def test_a_node_that_only_unmovable_pods_fill_is_not_searched() -> None:
    filled = [cards("a", 8), running("daemon", "a", 4, kind="DaemonSet"), running("p", "a", 2)]

    full = room_for(BIG, filled)

    assert full.tried is not None
    assert (full.plan, full.tried.nodes, full.tried.sets) == (None, 0, 0)


def test_pods_that_are_not_ready_are_moved_where_a_budget_allows_one_ready_pod() -> None:
    """Their eviction does not count for a budget that lacks none, so they are not interchangeable with ready pods."""
    broken = running("c", "a", 2).status(phase="Running", conditions=[{"type": "Ready", "status": "False"}])
    objects = [cards("a", 8), cards("b", 4), running("a", "a", 2), running("b", "a", 2), broken, budget("web", 1)]

    found = room_for(make_pod("big").gpu(6), objects)

    assert found.plan is not None
    assert sorted(move.pod.name for move in found.plan.moves) == ["a", "c"]


def test_the_pods_with_the_fewest_nodes_are_moved_first() -> None:
    only_b = running("z", "a", 4).node_selector("kubernetes.io/hostname", "b")
    objects = [cards("a", 8), cards("b", 4), cards("c", 4), running("k", "a", 4), only_b]

    found = room_for(BIG, objects)

    assert moves(found) == [("z", "b"), ("k", "c")]


def test_a_pod_that_no_moves_can_help_gets_none() -> None:
    found = room_for(make_pod("huge").gpu(16), FRAGMENTED)

    assert found.verdict == "None"
    assert found.message == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    assert found.tried is not None
    assert (found.tried.nodes, found.tried.sets, found.tried.is_complete) == (0, 0, True)


def test_a_moved_pod_must_fit_elsewhere() -> None:
    assert room_for(BIG, [cards("a", 8), cards("b", 4), running("a0", "a", 4), running("b0", "b", 2)]).verdict == "None"


def test_several_pods_are_moved_one_after_the_other() -> None:
    objects = [cards("a", 8), cards("b", 4), cards("c", 2), running("a0", "a", 4), running("a1", "a", 2)]

    found = room_for(BIG, objects)

    # The pod with the fewest nodes to choose from goes first.
    assert moves(found) == [("a0", "b"), ("a1", "c")]


@pytest.mark.parametrize(
    ("stuck", "reason"),
    [
        pytest.param(running("p", "a", 2, kind="DaemonSet"), "of a DaemonSet", id="of a DaemonSet"),
        pytest.param(
            running("p", "a", 2).annotate("kubernetes.io/config.mirror", "x"),
            "managed by a kubelet (mirror pods)",
            id="a mirror pod",
        ),
        pytest.param(
            make_pod("p").node_name("a").gpu(2).status(phase="Running"),
            "without a controller, so no pod would replace it",
            id="no controller",
        ),
        pytest.param(
            running("p", "a", 2).deletion("2026-03-01T00:00:00Z"), "already being deleted", id="being deleted"
        ),
        pytest.param(
            running("p", "a", 2).spec(resourceClaims=claiming("cards")),
            "with devices of ResourceClaims, which are not modelled",
            id="with devices",
        ),
    ],
)
def test_some_pods_are_not_moved(stuck: PodBuilder, reason: str) -> None:
    found = room_for(BIG, [cards("a", 8), cards("b", 4), stuck])

    assert found.verdict == "None"
    assert found.tried is not None
    assert found.tried.unmovable == {reason: 1}


def test_pods_of_one_budget_add_up() -> None:
    objects = [cards("a", 8), cards("b", 8), running("a0", "a", 4), running("a1", "a", 4)]
    pod = BIG.node_selector("kubernetes.io/hostname", "a")

    assert room_for(pod, [*objects, budget("web", 1)]).verdict == "None"
    assert sorted(moves(room_for(pod, [*objects, budget("web", 2)]))) == [("a0", "b"), ("a1", "b")]


def test_pods_of_jobs_are_moved_only_if_no_others_will_do() -> None:
    others = [running("a0", "a", 2), running("a1", "a", 2)]
    objects = [cards("a", 8), cards("b", 8), *others, running("b0", "b", 4, "Job")]

    assert sorted(moves(room_for(BIG, objects))) == [("a0", "b"), ("a1", "b")]
    assert moves(room_for(BIG, [cards("a", 8), cards("b", 4), running("a0", "a", 4, "Job")])) == [("a0", "b")]


def test_of_equal_solutions_the_pod_without_local_data_and_of_low_priority_goes() -> None:
    empty_dir = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    pods = [
        running("x", "a", 2).spec(**empty_dir),
        running("y", "a", 2).spec(priority=7),
        running("z", "a", 2).spec(priority=3),
    ]

    assert moves(room_for(make_pod("p").gpu(4), [cards("a", 8), cards("b", 2), *pods])) == [("z", "b")]


def test_pods_of_any_priority_are_moved() -> None:
    objects = [cards("a", 8), cards("b", 4), running("a0", "a", 4).spec(priority=1000)]

    assert moves(room_for(BIG, objects)) == [("a0", "b")]


def test_a_cordoned_node_is_not_freed() -> None:
    objects = [cards("a", 8, unschedulable=True), cards("b", 4), running("a0", "a", 4)]

    assert room_for(BIG.toleration(operator="Exists"), objects).verdict == "None"


def test_a_port_is_freed() -> None:
    objects = [cards("a", 0), cards("b", 0), running("web", "a").host_port(80), running("web-2", "b").host_port(81)]
    pod = make_pod("p").host_port(80).node_selector("kubernetes.io/hostname", "a")

    assert moves(room_for(pod, objects)) == [("web", "b")]


def test_pods_in_anti_affinity_are_moved_with_the_cordons_that_their_choice_needs() -> None:
    pod = apart("p").node_selector("kubernetes.io/hostname", "a")

    found = room_for(pod, [*(cards(name, 2) for name in "abc"), running("web", "a", 1)])

    assert found.plan is not None
    (move,) = found.plan.moves
    # Both other nodes have equal scores, and the scheduler would choose at random.
    assert (move.target, move.cordons, move.may_go_anywhere) == ("b", ("c",), False)


@pytest.mark.parametrize(("most", "verdict"), [(1, "None"), (2, "Moves")])
def test_a_move_with_too_many_cordons_is_not_proposed(most: int, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "MOST_CORDONS", most)
    pod = apart("p").node_selector("kubernetes.io/hostname", "a")

    found = room_for(pod, [*(cards(name, 2) for name in "abcd"), running("web", "a", 1)])

    assert (found.verdict, [len(move.cordons) for move in found.plan.moves] if found.plan else []) == (
        verdict,
        [2] if verdict == "Moves" else [],
    )


def test_a_moved_pod_does_not_keep_its_replacement_away() -> None:
    """The only other node is in the same zone, where the pod runs until then."""
    moved = running("web", "a", 4).affinity(_repelling("zone"))

    found = room_for(BIG, [cards("a", 8, labels={"zone": "1"}), cards("b", 4, labels={"zone": "1"}), moved])

    assert moves(found) == [("web", "b")]


def test_a_pod_that_tolerates_the_cordon_may_come_back_and_is_not_moved() -> None:
    objects = [cards("b", 8), cards("a", 4), running("p", "b", 4).toleration(UNSCHEDULABLE, operator="Exists")]

    assert room_for(BIG, objects).verdict == "None"


def test_without_such_terms_no_further_node_is_cordoned() -> None:
    found = room_for(BIG, [cards("a", 8), cards("b", 4), cards("c", 4), running("a0", "a", 4)])

    assert found.plan is not None
    (move,) = found.plan.moves
    assert (move.cordons, move.choices, move.may_go_anywhere) == ((), 2, True)


@pytest.mark.parametrize(("nodes", "anywhere"), [("b", False), ("bc", True)])
def test_pods_may_go_anywhere_if_each_has_more_nodes_than_pods_go_before_it(nodes: str, anywhere: bool) -> None:
    pods = [running(f"a{number}", "a", 2) for number in range(2)]

    found = room_for(BIG, [cards("a", 8), *(cards(name, 4) for name in nodes), *pods])

    assert found.plan is not None
    assert [(each.choices, each.may_go_anywhere) for each in found.plan.moves] == [(len(nodes), anywhere)] * 2


def test_pods_that_nothing_distinguishes_are_tried_once() -> None:
    many = [running(f"a{number}", "a", 1) for number in range(8)]

    found = room_for(make_pod("p").gpu(4), [cards("a", 8), cards("b", 1), *many])

    assert found.verdict == "None"
    assert found.tried is not None
    # One set of each size from four to eight pods, of 163 sets.
    assert found.tried.sets == 5


def test_the_search_ends_after_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_room, "MOST_TRIALS", 3)
    apart = [running(f"a{number}", "a", 1).label("number", str(number)).spec(priority=number) for number in range(8)]

    found = room_for(make_pod("p").gpu(4), [cards("a", 8), cards("b", 1), *apart])

    assert found.verdict == "None"
    assert found.tried is not None
    assert (found.tried.sets, found.tried.is_complete) == (3, False)


def test_the_search_that_moves_jobs_has_a_budget_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search without Jobs, which comes first, takes as many steps: its pods fit on no other node."""
    monkeypatch.setattr(make_room, "MOST_STEPS", 3)
    stuck = [
        running(f"a{number}", "a", 1).label("number", str(number)).node_selector("kubernetes.io/hostname", "a")
        for number in range(2)
    ]

    pod = make_pod("p").gpu(2).node_selector("kubernetes.io/hostname", "a")
    found = room_for(pod, [cards("a", 4), cards("b", 2), *stuck, running("job", "a", 2, kind="Job")])

    assert moves(found) == [("job", "b")]


def test_a_gated_pod_is_not_evaluated() -> None:
    assert room_for(BIG.spec(schedulingGates=[{"name": "x"}]), FRAGMENTED).verdict == "Unknown"
