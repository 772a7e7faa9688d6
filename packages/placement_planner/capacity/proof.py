"""Prove that pods can be moved off a node, one after the other, and that a pending pod then fits there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement_planner.capacity.moves import (
    Placer,
    PodToPlace,
    cordoned,
    with_facts_of,
    with_pod,
    without_pods,
)
from webhook.cluster.pods.bound_pods import BoundPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.result import Placement

# A plan that needs more nodes cordoned for one move is not proposed.
MOST_CORDONS = 20

Moved = Sequence[tuple[BoundPod, PodToPlace]]


@dataclass(frozen=True, slots=True)
class Move:
    """One pod that leaves a node, and the node that kube-scheduler chooses for the pod that replaces it.

    `cordons` are further nodes to cordon during the move, so that kube-scheduler chooses this node. If
    `may_go_anywhere`, the plan also works with any other of the `choices` nodes that fit.
    """

    pod: BoundPod
    target: str
    cordons: tuple[str, ...]
    choices: int
    may_go_anywhere: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The `moves` in order, which make room on `node`. `chosen` is the node to which the pending pod is then bound.

    `node` is cordoned during the moves.
    """

    node: str
    moves: tuple[Move, ...]
    chosen: str


def prove(snapshot: Snapshot, node: str, pods: Moved, pending: PodToPlace, placer: Placer) -> Plan | None:
    """Return the plan that moves `pods` off `node`, so that the `pending` pod fits there, or None.

    The result is None if a moved pod fits on no other node, or the pending pod does not fit afterwards. Each move is
    evaluated on the snapshot with `node` cordoned and the earlier moves made. If the choice of kube-scheduler matters,
    further nodes are cordoned, so that only one node has the best score.
    """
    keys = {pod.key for pod, _ in pods}
    if not pending.fits(placer, without_pods(snapshot, {node: keys}), node):
        return None
    before = cordoned(snapshot, (node,))
    choices = {}
    for pod, moved in pods:
        found = moved.feasible(placer, without_pods(before, {node: {pod.key}}))
        if not found.any() or found[snapshot.rows[node]]:
            return None
        choices[pod.key] = int(np.count_nonzero(found))
    ordered = sorted(pods, key=lambda each: (choices[each[0].key], each[0].key))
    may_go_anywhere = _any_choice_does(ordered, choices, snapshot, pending, placer)
    moves = []
    for pod, moved in ordered:
        before = without_pods(before, {node: {pod.key}})
        target, cordons = _choice(before, moved, placer, is_steered=not may_go_anywhere)
        if target is None:
            return None
        before = with_pod(before, moved, target)
        moves.append(Move(pod, target, cordons, choices[pod.key], may_go_anywhere))
    after = with_facts_of(before, snapshot, node)
    chosen = pending.answer(placer, after).node if pending.fits(placer, after, node) else None
    return None if chosen is None else Plan(node, tuple(moves), chosen)


def _any_choice_does(
    ordered: Moved, choices: Mapping[tuple[str, str], int], snapshot: Snapshot, pending: PodToPlace, placer: Placer
) -> bool:
    """Return true if the plan works whichever feasible nodes kube-scheduler chooses for the moved pods.

    This is the case if no pod depends on pods of other nodes, and each pod has more feasible nodes than pods move
    before it. Each earlier pod takes the room on at most one of these nodes.
    """
    if any(choices[pod.key] <= earlier for earlier, (pod, _) in enumerate(ordered)):
        return False
    return not any(each.reads_other_nodes(placer, snapshot) for each in (pending, *(moved for _, moved in ordered)))


def _choice(
    snapshot: Snapshot, pod: PodToPlace, placer: Placer, *, is_steered: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Return the node of `pod` and, if `is_steered`, the nodes to cordon so that only this node has the best score.

    A cordon changes the scores of the other nodes, so nodes are cordoned until only one has the best score.
    """
    cordons: tuple[str, ...] = ()
    while len(cordons) <= MOST_CORDONS:
        placement = pod.answer(placer, cordoned(snapshot, cordons))
        equals = _equals_of(placement) if is_steered else ()
        if placement.node is None or not equals:
            return placement.node, cordons
        cordons = (*cordons, *equals)
    return None, ()


def _equals_of(placement: Placement) -> tuple[str, ...]:
    """Return the other nodes with the best score."""
    totals = {node: scores["total"] for node, scores in placement.scores.items()}
    best = max(totals.values(), default=0)
    return tuple(node for node, total in totals.items() if total == best and node != placement.node)
