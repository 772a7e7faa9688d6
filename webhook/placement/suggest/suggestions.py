"""Suggest the smallest changes that make a pod fit, each verified by the filters.

Each node has a set of obstacles (a taint, a requirement, too little of a resource, …), and nodes with the same set form
a group. The groups with the fewest obstacles give the candidates. A candidate is applied to the pod or the cluster, and
all filters run again. It becomes a suggestion if nodes pass them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import key_of
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.taints import TEMPORARY_TAINTS
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import PlacementVerdict, Remedy
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.suggest.changes import Change, Evict, NodeChange, Scenario
from webhook.placement.suggest.free_capacity import capacity_changes
from webhook.placement.suggest.node_groups import NodeGroup, node_groups
from webhook.placement.suggest.pod_changes import (
    ReduceRequest,
    TolerateTaint,
    Ungate,
    Without,
    WithoutRequirement,
    WithoutTerms,
)
from webhook.placement.suggest.suggestion_text import CAN_TAKE, nominated_text, suggestion_text

# Smaller changes come first, so these bounds exclude only large ones.
_MOST_GROUPS = 16
_MOST_TRIED = 12
_MOST_CHANGES = 3

# Kinds of changes, the smaller first. The requests of a Waiting pod are possible, so capacity comes first.
_CONSTRAINTS, _CAPACITY = ("TolerateTaint", "Without"), ("ReduceRequest", "ReplaceRequest", "Evict", "Free")
_INFEASIBLE_ORDER = (*_CONSTRAINTS, *_CAPACITY, "Uncordon", "HalveRequest")
_WAITING_ORDER = (*_CAPACITY, *_CONSTRAINTS, "Uncordon", "HalveRequest")

FeasibleNodes = Callable[[Scenario], Mask]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion with its text: after `changes`, `nodes` nodes can take the pod, one of them `node`."""

    text: str
    changes: tuple[Change, ...]
    nodes: int
    node: str

    @property
    def remedy(self) -> Remedy:
        """Return the suggestion in a form that can be tried on other pods."""
        found = [_keys(each) for each in self.changes]
        keys = frozenset(key for each in found for key in each) if all(found) else None
        changed = [change.node for change in self.changes if isinstance(change, NodeChange)]
        return Remedy(self.text, changed[0] if changed else self.node, keys, partial(_changed, self.changes))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A candidate: `changes` after which the node in `row`, a node of `group`, may fit."""

    changes: tuple[Change, ...]
    row: int
    group: NodeGroup


def suggest(
    profile: Profile,
    scenario: Scenario,
    verdict: PlacementVerdict,
    feasible_nodes: FeasibleNodes,
    most: int,
    expired: Expired,
    temporary_taints: Collection[str] = TEMPORARY_TAINTS,
    preemption: PredictedPreemption | None = None,
) -> tuple[Suggestion, ...]:
    """Return at most `most` suggestions for a pod that no node can take, the best first.

    `feasible_nodes` runs all filters. `preemption` is the predicted preemption for the pod. The resources of nominated
    pods cannot be freed. Tolerating `temporary_taints` is never suggested.
    """
    pod, nodes = scenario
    if pod.gates and len(rows := np.flatnonzero(feasible_nodes(scenario))):
        # The filters ignore gates.
        removed = "the gate is removed" if pod.gates == 1 else "the gates are removed"
        text = f"{'1 node' if len(rows) == 1 else f'{len(rows)} nodes'} {CAN_TAKE} once {removed}"
        return (Suggestion(text, (Ungate(),), len(rows), nodes.nodes[rows[0]].node.name),)
    if pod.nomination.node_name and (waiting := [*_once_victims_are_gone(scenario, feasible_nodes)]):
        return tuple(waiting)
    with_nominated = nodes_with_nominated_pods(pod, nodes, profile.scheduler_names, expired)
    all_nominated = Scenario(pod, with_nominated.snapshot) if with_nominated else scenario
    evicts = preemption is not None and preemption.evicts
    order = _WAITING_ORDER if verdict == "Waiting" else _INFEASIBLE_ORDER
    candidates = [
        _Candidate((*group.changes, *change.changes), change.row, group)
        for group in in_time(node_groups(profile, scenario, _MOST_GROUPS, expired, temporary_taints), expired)
        if group.obstacles <= _MOST_CHANGES
        for change in capacity_changes(profile, group, all_nominated, nodes, expired, evicts=evicts)
        # Obstacles that no change removes are in no group.
        if group.changes or change.changes
    ]
    candidates.sort(key=lambda each: (len(each.changes), *_rank(each, order), -len(each.group.rows)))
    found: list[Suggestion] = [*_evicted(preemption, scenario, feasible_nodes)]
    for candidate in candidates[:_MOST_TRIED]:
        if len(found) == most or (found and len(candidate.changes) > len(found[0].changes) + 1):
            break
        if not any(_includes(candidate.changes, known.changes) for known in found):
            found += _verified(candidate, scenario, feasible_nodes)
    if len(found) < most and pod.by_container:
        found += _fewer_devices(scenario, feasible_nodes, expired)
    return tuple(found)


def _once_victims_are_gone(scenario: Scenario, feasible_nodes: FeasibleNodes) -> Iterator[Suggestion]:
    """Yield the suggestion to wait, if the pod has a nominated node and room there after the ending pods are gone."""
    pod, nodes = scenario
    node = pod.nomination.node_name
    ending = [each for each in nodes.nodes[nodes.rows[node]].pods if each.is_terminating] if node in nodes.rows else []
    changes = (Evict(node, tuple(map(key_of, ending))),)
    if ending and feasible_nodes(_changed(changes, *scenario))[nodes.rows[node]]:
        yield Suggestion(nominated_text(node, ending), changes, 1, node)


def _evicted(
    preemption: PredictedPreemption | None, scenario: Scenario, feasible_nodes: FeasibleNodes
) -> Iterator[Suggestion]:
    """Yield the eviction by which kube-scheduler makes room, on the first node that it may choose."""
    if preemption is None or not preemption.nodes:
        return
    node, row = preemption.nodes[0], scenario.nodes.rows[preemption.nodes[0]]
    changes = (Evict(node, tuple(map(key_of, preemption.chosen))),)
    if feasible_nodes(_changed(changes, *scenario))[row]:
        yield Suggestion(suggestion_text(changes, row, 1, np.array([row]), scenario), changes, 1, node)


def _fewer_devices(scenario: Scenario, feasible_nodes: FeasibleNodes, expired: Expired) -> Iterator[Suggestion]:
    """Yield the suggestion to reduce an extended resource, backed by devices, to the largest amount that fits."""
    requested = dict(scenario.pod.requests)
    backed = {name for each in scenario.pod.by_container for name, _ in each.amounts if name in requested}
    for resource in in_time(sorted(backed), expired):
        largest, too_many = 0, requested[resource]
        change, row = ReduceRequest(resource, 0, too_many), 0
        while too_many - largest > 1:
            tried = replace(change, amount=(largest + too_many) // 2)
            rows = np.flatnonzero(feasible_nodes(_changed((tried,), *scenario)))
            largest, too_many = (tried.amount, too_many) if len(rows) else (largest, tried.amount)
            row = int(rows[0]) if len(rows) else row
        if largest:
            changes = (replace(change, amount=largest),)
            text = suggestion_text(changes, row, 1, np.array([row]), scenario)
            yield Suggestion(text, changes, 1, scenario.nodes.nodes[row].node.name)
            return


def _includes(changes: Sequence[Change], smaller: Sequence[Change]) -> bool:
    """Return whether `changes` have all of `smaller`, where other pods of a node are no smaller eviction."""

    def is_within(other: Change) -> bool:
        if not isinstance(other, Evict):
            return other in changes
        evicted = (each for each in changes if isinstance(each, Evict) and each.node == other.node)
        return any(len(each.pods) >= len(other.pods) for each in evicted)

    return all(map(is_within, smaller))


def _changed(changes: Sequence[Change], pod: PodInfo, nodes: Snapshot) -> Scenario:
    scenario = Scenario(pod, nodes)
    for change in changes:
        scenario = change.apply(scenario)
    return scenario


def _keys(change: Change) -> tuple[str, ...]:
    """Return the key of the taint to tolerate or the keys of labels to stop requiring, or none for other changes."""
    if isinstance(change, TolerateTaint):
        return (change.key,)
    if isinstance(change, WithoutRequirement) and not change.is_of_field:
        return (change.requirement.key,)
    return tuple(each.key for each in change.alternatives) if isinstance(change, WithoutTerms) else ()


def _rank(candidate: _Candidate, order: Sequence[str]) -> list[int]:
    return sorted((order.index(_kind(change)) for change in candidate.changes), reverse=True)


def _kind(change: Change) -> str:
    if isinstance(change, ReduceRequest) and 2 * change.amount < change.requested:
        return "HalveRequest"
    return "Without" if isinstance(change, Without) else type(change).__name__


def _verified(candidate: _Candidate, scenario: Scenario, feasible_nodes: FeasibleNodes) -> Iterator[Suggestion]:
    rows = np.flatnonzero(feasible_nodes(_changed(candidate.changes, *scenario)))
    if len(rows):
        fitting_rows = np.intersect1d(rows, candidate.group.rows)
        text = suggestion_text(candidate.changes, candidate.row, len(rows), fitting_rows, scenario)
        first = fitting_rows[0] if len(fitting_rows) else rows[0]
        yield Suggestion(text, candidate.changes, len(rows), scenario.nodes.nodes[first].node.name)
