"""Each proposed move, made on the raw objects, fits for the plain placement check; no smaller plan exists."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_planner.capacity.make_room import Room, make_room
from placement_planner.capacity.proof import Plan
from tests.oracles import oracle
from tests.support.objects.moves import read, schedulers
from tests.support.random.crowded import Crowded, crowded, full_name_of

_SEEDS = st.integers(0, 2**32)


def _answer(world: Crowded) -> Room:
    snapshot, disruptions = read([*world.nodes, *world.pods, *world.budgets])
    return make_room(snapshot, disruptions.bound, disruptions.budgets, world.pending, schedulers())


def _made(world: Crowded, plan: Plan, dice: Random) -> Crowded:
    """Make the moves; where the plan holds for any choice of the scheduler, choose at random."""
    after = deepcopy(world)
    after.cordon(plan.node)
    for move in plan.moves:
        for name in move.cordons:
            after.cordon(name)
        again = after.remove(move.pod.full_name)
        found = oracle.place(again, after.nodes, after.pods)
        totals = {node: scores["total"] for node, scores in found.scores.items()}
        best = [node for node, total in totals.items() if total == max(totals.values())]
        assert plan.node not in totals
        if not move.may_go_anywhere:
            assert best == [move.target]
        after.bind(again, dice.choice(sorted(totals)) if move.may_go_anywhere else move.target)
        for name in move.cordons:
            after.uncordon(name)
    after.uncordon(plan.node)
    return after


def _fits(world: Crowded, node: str) -> bool:
    return node in oracle.place(world.pending, world.nodes, world.pods).scores


@pytest.mark.parametrize("minds", [False, True], ids=["alone", "with terms between pods"])
@given(_SEEDS)
def test_after_the_moves_the_pod_fits(minds: bool, seed: int) -> None:
    dice = Random(seed)
    world = crowded(dice, minds=minds)

    found = _answer(world)

    if found.plan is None:
        return
    assert _fits(_made(world, found.plan, dice), found.plan.node)


@given(_SEEDS)
def test_no_single_move_is_overlooked(seed: int) -> None:
    world = crowded(Random(seed), minds=False)
    found = _answer(world)
    if found.verdict == "Fits" or (found.plan is not None and len(found.plan.moves) == 1):
        return

    for pod in world.pods:
        owner = pod["metadata"].get("ownerReferences", [{"kind": ""}])[0]["kind"]
        is_refused = pod["metadata"]["labels"]["app"] == "a0" and world.budgets[0]["status"]["disruptionsAllowed"] == 0
        # A plan without pods of Jobs is preferred even if it is larger.
        is_dear = owner == "Job" and found.plan is not None
        if owner in ("", "DaemonSet") or is_refused or is_dear:
            continue
        after = deepcopy(world)
        after.cordon(pod["spec"]["nodeName"])
        again = after.remove(full_name_of(pod))
        target = oracle.place(again, after.nodes, after.pods).node
        after.uncordon(pod["spec"]["nodeName"])
        if target is not None:
            after.bind(again, target)
            assert not _fits(after, pod["spec"]["nodeName"]), full_name_of(pod)
