"""What is printed about moves of pods, and about a search for room that found none."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from placement_planner.capacity.make_room import Room, Tried
from placement_planner.capacity.proof import Move, Plan
from placement_planner.capacity_moves import _remarks, _tried, print_room, room_to_json
from tests.support.objects.builders import make_pod
from tests.support.objects.moves import budget, cards, drained, read, running
from webhook.cluster.objects.disruption_budget import Budgets
from webhook.cluster.pods.bound_pods import BoundPod


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize(
    ("sets", "moves", "nodes", "first"),
    [
        (0, 0, 0, "no moves make room: no node could be freed of enough pods"),
        (0, 0, 2, "no moves make room: 2 nodes could be freed of enough pods"),
        (1, 1, 1, "no moves make room: 1 set of 1 pod tried on 1 node"),
        (5, 3, 2, "no moves make room: 5 sets of 1 to 3 pods tried on 2 nodes"),
    ],
)
def test_the_extent_of_a_search_is_stated(sets: int, moves: int, nodes: int, first: str, *, is_complete: bool) -> None:
    found = [*_tried(Tried(nodes, sets, moves, is_complete, {"b": 1, "a": 1, "c": 2}))]

    early = [] if is_complete else ["the search ended early: not every set was tried"]
    unmovable = ["not moved: 2 pods c", "not moved: 1 pod a", "not moved: 1 pod b"]
    assert found == [first, *early, *unmovable]


KEPT = {"volumes": [{"name": "scratch", "emptyDir": {}}]}


def bound(*objects: Any) -> tuple[list[BoundPod], Budgets | None]:
    """Return the pods on node a, and the budgets."""
    _, disruptions = read([cards("a", 8), cards("b", 8), *objects])
    return [*disruptions.bound["a"]], disruptions.budgets


def plan(*objects: Any) -> tuple[Plan, Budgets | None]:
    """Return a plan that moves the pods of node a to b, after which the pending pod is bound to node c."""
    pods, budgets = bound(*objects)
    moves = tuple(
        Move(pod, "b", ("x", "y") if number else (), 3 - number, may_go_anywhere=not number)
        for number, pod in enumerate(pods)
    )
    return Plan("a", moves, "c"), budgets


def test_nodes_are_cordoned_while_a_pod_is_moved_and_the_freed_one_until_the_last_has_left() -> None:
    found, budgets = plan(running("p", "a"), running("q", "a"), budget("web", 1))

    commands = room_to_json(Room("Moves", plan=found), budgets)["commands"]

    assert [each.partition(" -f ")[0].partition(" | ")[2] or each for each in commands] == [
        "kubectl cordon a",
        "kubectl create --raw /api/v1/namespaces/team-a/pods/p/eviction",
        "kubectl cordon x y",
        "kubectl create --raw /api/v1/namespaces/team-a/pods/q/eviction",
        "kubectl uncordon x y",
        "kubectl uncordon a",
    ]


@pytest.mark.parametrize(
    ("budgets", "is_deleted"),
    [([], False), ([budget("of-others", 1, app="other")], True), ([budget("web", 1)], False)],
    ids=["budgets are not known", "a budget of other pods", "a budget of the pod"],
)
def test_a_pod_is_only_deleted_if_it_is_known_to_have_no_budget(budgets: list[Any], *, is_deleted: bool) -> None:
    found, known = plan(running("p", "a"), *budgets)

    (move,) = room_to_json(Room("Moves", plan=found), known)["moves"]

    assert (move["command"] == "kubectl delete pod p --namespace team-a") is is_deleted
    assert ("/pods/p/eviction" in move["command"]) is not is_deleted


@pytest.mark.parametrize(
    ("kind", "spec", "work", "data"),
    [
        ("ReplicaSet", {}, False, False),
        ("ReplicaSet", KEPT, False, True),
        ("Job", {}, True, False),
        ("Job", KEPT, True, True),
    ],
)
def test_the_losses_of_a_move_are_in_text_and_json(kind: str, spec: dict[str, Any], work: bool, data: bool) -> None:
    found, budgets = plan(running("p", "a", kind=kind).spec(**spec))
    room, out = Room("Moves", plan=found), StringIO()

    print_room(Console(file=out, width=300), room, budgets)
    shown = room_to_json(room, budgets)

    (move,) = shown["moves"]
    assert (move["losesWork"], move["losesLocalData"]) == (work, data)
    (line,) = [each.strip() for each in out.getvalue().splitlines() if each.strip().startswith("1. ")]
    remarks = ["its work begins again"] * work + ["the data of its emptyDir volumes are lost"] * data
    target = "from a to b (or to another of the 3 nodes that fit)"
    assert line == "; ".join([f"1. team-a/p of {kind} app {target}", *remarks])
    assert (shown["node"], shown["boundTo"]) == ("a", "c")
    assert "then the pod fits on c," in out.getvalue()


@pytest.mark.parametrize(
    ("choices", "may_go_anywhere", "has_others"), [(1, True, False), (2, True, True), (2, False, False)]
)
def test_other_nodes_are_named_if_there_are_some_and_any_of_them_does(
    choices: int, may_go_anywhere: bool, has_others: bool
) -> None:
    (pod,), budgets = bound(running("p", "a"))
    out = StringIO()

    found = Plan("a", (Move(pod, "b", (), choices, may_go_anywhere),), "a")
    print_room(Console(file=out, width=300), Room("Moves", plan=found), budgets)

    assert (f"or to another of the {choices} nodes" in out.getvalue()) is has_others


def test_each_consequence_of_a_drain_names_its_pods() -> None:
    bare = make_pod("bare").namespace("team-a").node_name("a").spec(**KEPT).status(phase="Running")
    mirror = make_pod("static").node_name("a").annotate("kubernetes.io/config.mirror", "x").status(phase="Running")
    objects = [
        *(bare, mirror, running("agent", "a", kind="DaemonSet"), running("job", "a", kind="Job")),
        *(running("other", "a").scheduler("volcano"), running("data", "a").spec(**KEPT)),
        running("ending", "a").deletion("2026-03-01T00:00:00Z"),
    ]

    found = drained([cards("a", 8), cards("b", 8), *objects], "a")

    data = "the data are lost; kubectl drain refuses them without --delete-emptydir-data"
    assert [each.partition("; `kubectl")[0] for each in _remarks(found)] == [
        "1 pod without a controller: lost; kubectl drain refuses them without --force: team-a/bare",
        f"2 pods with emptyDir volumes: {data}: team-a/bare, team-a/data",
        "1 pod of Jobs: their work begins again: team-a/job",
        "1 pod of other schedulers: placed here as kube-scheduler would: team-a/other",
        "1 pod of DaemonSets: they stay; kubectl drain refuses them without --ignore-daemonsets: team-a/agent",
        "1 pod managed by the kubelet (mirror pods): they stay: default/static",
        "1 pod that are already being deleted: team-a/ending",
        "PodDisruptionBudgets are not known",
    ]
