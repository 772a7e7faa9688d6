"""The nodes on which the claims of a pod can be allocated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from webhook.cluster.dra.devices import Devices
from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import may_name_device_class
from webhook.kube.release import Change, Release
from webhook.placement.dra.constraints import AttributeRule
from webhook.placement.dra.device_allocator import MOST_DEVICES_OF_A_POD, Choice, IndexedRequest, allocate
from webhook.placement.dra.device_selection import remembered
from webhook.placement.dra.extended_resource_claim import ExtendedResourceClaims, extended_resource_claims
from webhook.placement.dra.pools import NodeDevices, NodePools
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget
from webhook.placement.pod.pod_info import PodInfo, PodResourceClaim

# Answers for pods with more claims and requests are not cached.
_MOST_PARTS = 256
# Source: k8s.io/api/resource/v1/types.go, FirstAvailableDeviceRequestMaxSize
_MOST_ALTERNATIVES = 8


class DeviceFeasibility(NamedTuple):
    """The result of a pod's claims for each node.

    The masks are true for these nodes. `lacks_resource`: the node lacks an extended resource that no DeviceClass backs.
    `unallocatable`: devices are missing. `invalid`: devices are missing, and a pool is invalid. `unavailable`: the node
    cannot access the devices that are allocated to a claim. `preferred` is the score of the alternatives that the
    claims get on each node. `is_decided` is true if the result is known for every node that is not rejected.
    """

    lacks_resource: Mask
    unallocatable: Mask
    invalid: Mask
    unavailable: Mask
    preferred: Column
    is_decided: bool

    @property
    def rejected(self) -> Mask:
        """A mask of the nodes that are rejected for any reason."""
        return self.lacks_resource | self.unallocatable | self.invalid | self.unavailable


def resource_claim(use: PodResourceClaim, devices: Devices) -> ResourceClaim | None:
    """Return the claim or claim template that a pod uses, or None if it does not exist or is not known."""
    templates = devices.planned_templates if devices.templates is None else devices.templates
    return (templates if use.is_template else devices.claims or {}).get((use.namespace, use.name))


def lacks_template(use: PodResourceClaim, devices: Devices) -> bool:
    """Return true if it is not known whether the claim template that a pod uses exists."""
    return use.is_template and devices.templates is None and resource_claim(use, devices) is None


def device_feasibility(pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> DeviceFeasibility:
    """Return the nodes that can allocate the claims of `pod` and its extended resources backed by DeviceClasses."""
    extended = tuple([each for each in pod.requests if may_name_device_class(each[0])]) if pod.by_container else ()
    key = (pod.device_claims, pod.by_container, extended, nodes.is_without_pods, nodes.release.minor)
    if len(pod.device_claims) + sum([len(each.amounts) for each in pod.by_container]) > _MOST_PARTS:
        return _feasibility(pod, nodes, expired)
    # Starting and ending pods do not change these.
    inputs = (nodes.labels, nodes.rows, nodes.allocatable_columns if extended else None)
    return remembered(nodes, key, inputs, partial(_feasibility, pod, nodes, expired))


@dataclass(slots=True)
class _Plan:
    """The choices of all claims, and all requests and constraints on devices."""

    choices: list[Choice]
    requests: list[IndexedRequest]
    rules: list[AttributeRule]


def _feasibility(pod: PodInfo, nodes: Snapshot, expired: Expired) -> DeviceFeasibility:
    claims = [resource_claim(use, nodes.devices) for use in pod.device_claims]
    known = [claim for claim in claims if claim is not None]
    extended = extended_resource_claims(pod, nodes, expired)
    needs_devices = bool(pod.device_claims) or any(need.claim for need in extended.needs)
    is_decided = extended.is_known and (not needs_devices or _is_known(pod, nodes))
    fit = _feasibility_of(known, extended, nodes, expired, is_decided=is_decided)
    if not nodes.is_without_pods or all(claim.allocation is None for claim in known):
        return fit
    # A claim may keep its devices, which slices need not have any more, or lose them with its pods.
    lost = [replace(claim, allocation=None) for claim in known]
    reallocated = _feasibility_of(lost, extended, nodes, expired, is_decided=is_decided)
    rejected = fit.rejected & reallocated.rejected
    nothing = np.zeros_like(rejected)
    return DeviceFeasibility(
        nothing, rejected, nothing, nothing, reallocated.preferred, fit.is_decided and reallocated.is_decided
    )


def _feasibility_of(
    claims: Sequence[ResourceClaim],
    extended: ExtendedResourceClaims,
    nodes: Snapshot,
    expired: Expired,
    *,
    is_decided: bool,
) -> DeviceFeasibility:
    """Return the result of `claims` and the `extended` claims for each node. Allocated claims keep their devices."""
    count = len(nodes.nodes)
    unavailable = np.zeros(count, dtype=np.bool_)
    unallocated = []
    for claim in in_time(claims, expired):
        if claim.allocation is None:
            unallocated.append(claim)
            continue
        is_decided = is_decided and claim.allocation.is_known
        if claim.allocation.has_failed:
            unavailable[:] = True
        if claim.allocation.terms is not None:
            unavailable |= ~any_matches(claim.allocation.terms, nodes.labels, nodes.rows, expired)
    unallocatable, invalid = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    preferred = np.full(count, sum(map(_preferred_of_allocated, claims)), dtype=np.int64)
    fit = DeviceFeasibility(extended.lacks_resource, unallocatable, invalid, unavailable, preferred, is_decided)
    for need in in_time(extended.needs, expired):
        need_claims = [*unallocated, need.claim] if need.claim else unallocated
        if any(claim.requests for claim in need_claims) and not _allocate(need_claims, need.rows, fit, nodes, expired):
            fit = fit._replace(is_decided=False)
    offered = ~extended.lacks_resource
    unallocatable, invalid = fit.unallocatable & offered, fit.invalid & offered
    return fit._replace(
        unallocatable=unallocatable, invalid=invalid, unavailable=unavailable & offered & ~(unallocatable | invalid)
    )


def is_left_out(use: PodResourceClaim, nodes: Snapshot) -> bool:
    """Return whether the claim or claim template that a pod uses is left out of the view."""
    return nodes.left_out.has("ResourceClaimTemplate" if use.is_template else "ResourceClaim", use.namespace, use.name)


def _is_known(pod: PodInfo, nodes: Snapshot) -> bool:
    devices = nodes.devices
    if any(is_left_out(use, nodes) for use in pod.device_claims):
        return False
    if devices.claims is None or any(lacks_template(use, devices) for use in pod.device_claims):
        return False
    return len(set(pod.device_claims)) == len(pod.device_claims) or all(use.is_template for use in pod.device_claims)


def _preferred_of_allocated(claim: ResourceClaim) -> int:
    allocated = set(claim.allocation.requests) if claim.allocation else set()
    return sum(
        _MOST_ALTERNATIVES - place
        for alternatives in claim.requests
        if alternatives.is_list
        for place, request in enumerate(alternatives.requests)
        if request.name in allocated
    )


def _allocate(
    claims: Sequence[ResourceClaim], rows_to_check: Rows, fit: DeviceFeasibility, nodes: Snapshot, expired: Expired
) -> bool:
    """Write to `fit` the result of the unallocated claims for the nodes in `rows_to_check`.

    Return whether the result is known for all of these nodes.
    """
    plan, slices = _plan(claims, nodes.devices), nodes.devices.slices
    if plan is None or slices is None:
        return False
    pools = NodePools(slices, nodes, plan.requests, [rule.attribute for rule in plan.rules], expired)
    alike: dict[NodeDevices, list[int]] = {}
    try:
        for row in in_time(rows_to_check.tolist(), expired):
            alike.setdefault(pools.of(row), []).append(row)
    except SearchAbortedError:
        return False
    budget = StepBudget(expired=expired)
    is_decided = True
    for found, rows in in_time(alike.items(), expired):
        chosen = _chosen_alternatives(plan, found, budget, nodes.release, is_without_pods=nodes.is_without_pods)
        if chosen is None:
            (fit.invalid if found.is_invalid else fit.unallocatable)[rows] = True
        elif chosen == _UNDECIDED:
            is_decided = False
        else:
            fit.preferred[rows] += sum(
                _MOST_ALTERNATIVES - place
                for choice, place in zip(plan.choices, chosen, strict=True)
                if "/" in choice.alternatives[0].request.name
            )
    return is_decided


_UNDECIDED = (-1,)


def _chosen_alternatives(
    plan: _Plan, found: NodeDevices, budget: StepBudget, release: Release, *, is_without_pods: bool
) -> tuple[int, ...] | None:
    """Return the alternatives that the choices get on nodes with the devices `found`, or None for too few devices."""
    if found.is_unpredictable:
        return _UNDECIDED
    if (found.is_incomplete or found.is_invalid) and (
        is_without_pods or any(each.request.takes_all for each in plan.requests)
    ):
        return _UNDECIDED
    try:
        return allocate(
            plan.choices,
            plan.rules,
            found.candidates,
            budget,
            free_counters=found.counters,
            leaks_counters=not (is_without_pods or release.has(Change.SKIPPED_DEVICES_RELEASE_COUNTERS)),
            compares_all=release.has(Change.EVERY_DEVICE_IS_DISTINCT),
        )
    except SearchAbortedError:
        return _UNDECIDED


def _plan(claims: Sequence[ResourceClaim], devices: Devices) -> _Plan | None:
    """Return the plan for `claims`, or None if a request is not modelled or its class is not known."""
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
                places = [place for place, each in enumerate(claim.constraints, first) if each.concerns(request.name)]
                selectors = (*device_class.selectors, *request.selectors)
                wanted.append(IndexedRequest(request, len(plan.requests), tuple(places), selectors))
                plan.requests.append(wanted[-1])
            if not wanted:
                return None
            plan.choices.append(Choice(tuple(wanted), number))
    most = sum(max(each.request.amount for each in choice.alternatives) for choice in plan.choices)
    return plan if most <= MOST_DEVICES_OF_A_POD else None
