"""On which nodes the claims of a pod can have their devices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.dra.devices import Devices
from webhook.cluster.dra.resource_claim import AttributeConstraint, ResourceClaim
from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.resource_names import may_name_device_class
from webhook.placement.dra.allocator import (
    MOST_DEVICES_OF_A_POD,
    AvailableDevices,
    Choice,
    IndexedRequest,
    allocate,
)
from webhook.placement.dra.constraints import AttributeRule
from webhook.placement.dra.extended_resource_claim import ExtendedResourceClaims, extended_resource_claims
from webhook.placement.dra.pools import NodeDevices, NodePools, SelectedRequest
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget
from webhook.placement.pod.pod_info import PodInfo, PodResourceClaim

# So many answers are kept, for as long as the device objects of the cluster hold.
_MOST_ANSWERS = 64
# The answer for a pod with more claims and requests is not worth the room.
_MOST_PARTS = 256
# Source: k8s.io/api/resource/v1/types.go, FirstAvailableDeviceRequestMaxSize
_MOST_ALTERNATIVES = 8


class DeviceFeasibility(NamedTuple):
    """What the claims of a pod make of each node.

    `unoffered`: an extended resource is missing that no DeviceClass backs; `unallocatable`: devices are missing;
    `invalid`: so they are, and a pool is not fit for use; `unavailable`: the devices that a claim has got are not
    reached from there. `preferred` is how far up in lists of alternatives its claims come there. `is_decided`: no node
    is let through of which it is not known whether it will do.
    """

    unoffered: Mask
    unallocatable: Mask
    invalid: Mask
    unavailable: Mask
    preferred: Column
    is_decided: bool

    @property
    def rejected(self) -> Mask:
        """The nodes that will not do, for whichever reason."""
        return self.unoffered | self.unallocatable | self.invalid | self.unavailable


def resource_claim(use: PodResourceClaim, devices: Devices) -> ResourceClaim | None:
    """The claim, or the template of one, that a pod uses; None where it is not there, or not known."""
    known = devices.templates if use.is_template else devices.claims
    return (known or {}).get((use.namespace, use.name))


def device_feasibility(pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> DeviceFeasibility:
    """What the claims of `pod`, and its extended resources that a DeviceClass backs, make of each of `nodes`.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    answers: dict[Any, _Answer] = nodes.devices.answers
    extended = tuple([each for each in pod.requests if may_name_device_class(each[0])]) if pod.by_container else ()
    key = (pod.device_claims, pod.by_container, extended, nodes.is_without_pods)
    facts = (nodes.labels, nodes.rows, nodes.allocatable_columns if extended else None)
    answer = answers.get(key)
    # Pods come and go without a change of these.
    if answer is None or not all(map(is_, answer.facts, facts)):
        answer = _Answer(facts, _fit(pod, nodes, expired))
        if len(answers) >= _MOST_ANSWERS:
            answers.clear()
        if len(pod.device_claims) + sum([len(each.amounts) for each in pod.by_container]) <= _MOST_PARTS:
            answers[key] = answer
    return answer.fit


class _Answer(NamedTuple):
    facts: tuple[object, ...]
    fit: DeviceFeasibility


@dataclass(slots=True)
class _Plan:
    """What is to be allocated: the choices of all claims, and all that is asked of a device."""

    choices: list[Choice]
    asks: list[SelectedRequest]
    rules: list[AttributeRule]


def _fit(pod: PodInfo, nodes: Snapshot, expired: Expired) -> DeviceFeasibility:
    claims = [resource_claim(use, nodes.devices) for use in pod.device_claims]
    known = [claim for claim in claims if claim is not None]
    demand = extended_resource_claims(pod, nodes, expired)
    needs_devices = bool(pod.device_claims) or any(lot.claim for lot in demand.lots)
    is_decided = demand.is_known and (not needs_devices or _is_known(pod, nodes.devices))
    fit = _fit_of(known, demand, nodes, expired, is_decided=is_decided)
    if not nodes.is_without_pods or all(claim.allocation is None for claim in known):
        return fit
    # A claim may keep the devices that it has got, which slices need not have any more, or lose them with its pods.
    lost = [replace(claim, allocation=None) for claim in known]
    anew = _fit_of(lost, demand, nodes, expired, is_decided=is_decided)
    rejected = fit.rejected & anew.rejected
    nothing = np.zeros_like(rejected)
    return DeviceFeasibility(nothing, rejected, nothing, nothing, anew.preferred, fit.is_decided and anew.is_decided)


def _fit_of(
    claims: Sequence[ResourceClaim],
    demand: ExtendedResourceClaims,
    nodes: Snapshot,
    expired: Expired,
    *,
    is_decided: bool,
) -> DeviceFeasibility:
    """What `claims` and the `demand` make of each node; claims that have got devices keep them."""
    count = len(nodes.nodes)
    unavailable = np.zeros(count, dtype=np.bool_)
    waiting = []
    for claim in in_time(claims, expired):
        if claim.allocation is None:
            waiting.append(claim)
            continue
        is_decided = is_decided and claim.allocation.is_known
        if claim.allocation.has_failed:
            unavailable[:] = True
        if claim.allocation.terms is not None:
            unavailable |= ~any_matches(claim.allocation.terms, nodes.labels, nodes.rows, expired)
    unallocatable, invalid = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    preferred = np.full(count, sum(map(_preferred_of_allocated, claims)), dtype=np.int64)
    fit = DeviceFeasibility(demand.unoffered, unallocatable, invalid, unavailable, preferred, is_decided)
    for lot in in_time(demand.lots, expired):
        lot_claims = [*waiting, lot.claim] if lot.claim else waiting
        if any(claim.requests for claim in lot_claims) and not _allocate(lot_claims, lot.rows, fit, nodes, expired):
            fit = fit._replace(is_decided=False)
    offered = ~demand.unoffered
    unallocatable, invalid = fit.unallocatable & offered, fit.invalid & offered
    return fit._replace(
        unallocatable=unallocatable, invalid=invalid, unavailable=unavailable & offered & ~(unallocatable | invalid)
    )


def _is_known(pod: PodInfo, devices: Devices) -> bool:
    """Whether all objects are known that say what the claims of the pod are and what others have taken."""
    if devices.claims is None or any(use.is_template and devices.templates is None for use in pod.device_claims):
        return False
    return len(set(pod.device_claims)) == len(pod.device_claims) or all(use.is_template for use in pod.device_claims)


def _preferred_of_allocated(claim: ResourceClaim) -> int:
    got = set(claim.allocation.requests) if claim.allocation else set()
    return sum(
        _MOST_ALTERNATIVES - place
        for alternatives in claim.requests
        if alternatives.is_list
        for place, request in enumerate(alternatives.requests)
        if request.name in got
    )


def _allocate(
    claims: Sequence[ResourceClaim], rows_asked: Rows, fit: DeviceFeasibility, nodes: Snapshot, expired: Expired
) -> bool:
    """Enter into `fit` what claims that have no devices yet make of the nodes in `rows_asked`.

    Returns whether that is known of all of them.
    """
    plan, slices = _planned(claims, nodes.devices), nodes.devices.slices
    if plan is None or slices is None:
        return False
    inventory = NodePools(slices, nodes, plan.asks, [rule.attribute for rule in plan.rules], expired)
    alike: dict[NodeDevices, list[int]] = {}
    try:
        for row in in_time(rows_asked.tolist(), expired):
            alike.setdefault(inventory.of(row), []).append(row)
    except SearchAbortedError:
        return False
    budget = StepBudget(expired=expired)
    is_decided = True
    for found, rows in in_time(alike.items(), expired):
        chosen = _chosen(plan, found, budget, is_without_pods=nodes.is_without_pods)
        if chosen is None:
            (fit.invalid if found.is_invalid else fit.unallocatable)[rows] = True
        elif chosen == _UNDECIDED:
            is_decided = False
        else:
            fit.preferred[rows] += sum(
                _MOST_ALTERNATIVES - place
                for choice, place in zip(plan.choices, chosen, strict=True)
                if "/" in choice.wanted[0].request.name
            )
    return is_decided


_UNDECIDED = (-1,)


def _chosen(plan: _Plan, found: NodeDevices, budget: StepBudget, *, is_without_pods: bool) -> tuple[int, ...] | None:
    """The alternatives that the choices get on nodes that have what was `found`; None: there is not enough."""
    if found.is_odd:
        return _UNDECIDED
    if (found.is_incomplete or found.is_invalid) and (
        is_without_pods or any(ask.wanted.request.takes_all for ask in plan.asks)
    ):
        return _UNDECIDED
    try:
        stock = AvailableDevices(found.candidates, found.counters)
        return allocate(plan.choices, plan.rules, stock, budget, leaks=not is_without_pods)
    except SearchAbortedError:
        return _UNDECIDED


def _planned(claims: Sequence[ResourceClaim], devices: Devices) -> _Plan | None:
    """The plan for `claims`; None where one asks for something that is not modelled, or for an unknown class."""
    plan = _Plan([], [], [])
    for number, claim in enumerate(claims):
        if not all(constraint.attribute for constraint in claim.constraints):
            return None
        first = len(plan.rules)
        plan.rules += [AttributeRule(each.attribute, each.is_distinct) for each in claim.constraints]
        for alternatives in claim.requests:
            wanted = []
            for request in alternatives.requests:
                device_class = (devices.classes or {}).get(request.device_class)
                if device_class is None or not request.is_modelled:
                    return None
                wanted.append(
                    IndexedRequest(request, len(plan.asks), _constraints_of(request.name, claim.constraints, first))
                )
                plan.asks.append(SelectedRequest(wanted[-1], (*device_class.selectors, *request.selectors)))
            if not wanted:
                return None
            plan.choices.append(Choice(tuple(wanted), number))
    return plan if sum(map(_most, plan.choices)) <= MOST_DEVICES_OF_A_POD else None


def _most(choice: Choice) -> int:
    return max(each.request.amount for each in choice.wanted)


def _constraints_of(request: str, constraints: Sequence[AttributeConstraint], first: int) -> tuple[int, ...]:
    return tuple([place for place, each in enumerate(constraints, first) if each.concerns(request)])
