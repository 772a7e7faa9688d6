"""Allocate the devices of a node to claims, with a bounded version of kube-scheduler's search.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from webhook.cluster.dra.device import AttributeValue
from webhook.cluster.dra.device_class import Selectors
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.placement.dra.constraints import AttributeRule, ConstraintState
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget

# The state of a device for a request: not selected, or selected and allocated to a claim, tainted (or, for a request
# for all devices, without enough capacity left), or free.
NOT_SELECTED, ALLOCATED, TAINTED, FREE = range(4)

# Source: k8s.io/api/resource/v1/types.go, AllocationResultsMaxSize
MOST_DEVICES_OF_A_CLAIM = 32
# A search for more devices for one pod takes too long.
MOST_DEVICES_OF_A_POD = 256
# Outcomes of a part of the search; the last: a claim would exceed the devices that it can have.
_FOUND, _NONE, _EXCEEDED = range(3)


class Candidate(NamedTuple):
    """The part of a device that matters to the search: its state for each request, and its value for each constraint.

    A device that can be allocated several times has `consumed_capacity`, the amounts of its capacities that each
    request consumes, and `free_capacity`. `counters` are (index of the counter, amount) that it consumes of its pool.
    `pool` is the index of the pool among the pools of the node.
    """

    states: tuple[int, ...]
    values: tuple[AttributeValue | None, ...]
    consumed_capacity: tuple[tuple[int, ...], ...] | None = None
    free_capacity: tuple[int, ...] = ()
    pool: int = -1
    counters: tuple[tuple[int, int], ...] = ()


class IndexedRequest(NamedTuple):
    """A request. `number` is its index in `Candidate.states`; `constraints` are indexes in `Candidate.values`.

    `selectors` are all selectors that a device must satisfy: those of the class, then those of the request.
    """

    request: DeviceRequest
    number: int
    constraints: tuple[int, ...]
    selectors: Selectors = ()


class Choice(NamedTuple):
    """One request of the claim number `claim`, or a list of alternatives, of which the first that fits is used."""

    alternatives: tuple[IndexedRequest, ...]
    claim: int


def allocate(
    choices: Sequence[Choice],
    rules: Sequence[AttributeRule],
    devices: Sequence[Candidate],
    budget: StepBudget,
    *,
    free_counters: Sequence[tuple[int, ...]] = (),
    leaks_counters: bool = False,
    compares_all: bool = True,
) -> tuple[int, ...] | None:
    """Return the index of the alternative that each of `choices` gets, or None if there are too few devices.

    `devices` are the devices of a node in kube-scheduler's order, and `free_counters` the counters of its pools. Before
    1.37, kube-scheduler does not restore the counters of a device that it skips because of a taint or a constraint
    (`leaks_counters`), and does not compare distinct attributes with all devices (`compares_all` is false).

    Raises:
        SearchAbortedError: the budget is spent, or kube-scheduler gets an error.
        DeadlineNearError: the deadline has passed.
    """
    states = [ConstraintState(rule, compares_all) for rule in rules]
    search = _Search(choices, states, devices, free_counters, budget, leaks_counters=leaks_counters)
    for _, of_claim in groupby(choices, key=lambda choice: choice.claim):
        if sum(min(map(search.device_count, choice.alternatives)) for choice in of_claim) > MOST_DEVICES_OF_A_CLAIM:
            raise SearchAbortedError
    outcome = search.choose(0)
    if outcome == _EXCEEDED:
        raise SearchAbortedError
    return tuple(search.chosen) if outcome == _FOUND else None


class _Search:
    def __init__(
        self,
        choices: Sequence[Choice],
        constraint_states: Sequence[ConstraintState],
        devices: Sequence[Candidate],
        free_counters: Sequence[tuple[int, ...]],
        budget: StepBudget,
        *,
        leaks_counters: bool,
    ) -> None:
        self._choices = choices
        self._devices = devices
        self._free_counters = free_counters
        self._budget = budget
        self._leaks_counters = leaks_counters
        self._selected: dict[int, list[int]] = {}
        self._constraint_states = constraint_states
        self._used: dict[int, set[int]] = {}
        self._consumed = [[0] * len(each) for each in free_counters]
        self._shared: dict[int, list[int]] = {}
        self._counts = {choice.claim: 0 for choice in choices}
        # If only the number of equal devices matters, one that failed stands for all equal ones. It is the first one
        # that an administrator can share, too. But a constraint that breaks for all devices is an error if the search
        # meets it before a device in use.
        self._is_plain = (
            not any(each.rule.is_distinct for each in constraint_states)
            and not any(device.consumed_capacity is not None or device.counters for device in devices)
            and not any(each.request.takes_all and each.constraints for one in choices for each in one.alternatives)
        )
        self.chosen = [0] * len(choices)

    def device_count(self, indexed: IndexedRequest) -> int:
        return len(self._selected_by(indexed)) if indexed.request.takes_all else indexed.request.amount

    def choose(self, index: int) -> int:
        """Allocate unused devices to the choices from `index` on."""
        if index == len(self._choices):
            return _FOUND
        outcome = self._choose_one(index)
        before = self._choices[index - 1].claim if index else 0
        # A claim with too many devices does not affect the claim before it.
        return _NONE if outcome == _EXCEEDED and self._choices[index].claim != before else outcome

    def _choose_one(self, index: int) -> int:
        has_exceeded = True
        for place, indexed in enumerate(self._choices[index].alternatives):
            self.chosen[index] = place
            outcome = self._satisfy(index, indexed)
            if outcome == _FOUND:
                return _FOUND
            has_exceeded &= outcome == _EXCEEDED
        return _EXCEEDED if has_exceeded else _NONE

    def _satisfy(self, index: int, indexed: IndexedRequest) -> int:
        number = self.device_count(indexed)
        if not number:
            return _NONE
        if self._counts[self._choices[index].claim] + number > MOST_DEVICES_OF_A_CLAIM:
            return _EXCEEDED
        return (
            self._allocate_all(index, indexed)
            if indexed.request.takes_all
            else self._allocate_some(index, indexed, 0, 0)
        )

    def _allocate_some(self, index: int, indexed: IndexedRequest, have: int, start: int) -> int:
        """Allocate the missing devices of a request from `start` on, then those of the remaining choices."""
        if have == indexed.request.amount:
            return self.choose(index + 1)
        failed: set[Candidate] = set()
        places = self._selected_by(indexed)
        for position in range(start, len(places)):
            self._budget.inspect(position)
            place = places[position]
            device = self._devices[place]
            if not self._is_candidate(index, indexed, place) or device in failed:
                continue
            self._budget.spend()
            if self._allocate(index, indexed, place):
                outcome = self._allocate_some(index, indexed, have + 1, position + 1)
                if outcome == _FOUND:
                    return _FOUND
                self._deallocate(index, indexed, place)
                if outcome == _EXCEEDED:
                    return _EXCEEDED
            if self._is_plain:
                failed.add(device)
        return _NONE

    def _is_candidate(self, index: int, indexed: IndexedRequest, place: int) -> bool:
        device = self._devices[place]
        if device.states[indexed.number] == TAINTED and self._is_plain:
            return False
        return not self._is_in_use(index, indexed, place) and self._has_capacity(indexed, place)

    def _selected_by(self, indexed: IndexedRequest) -> list[int]:
        number = indexed.number
        if number not in self._selected:
            devices = enumerate(self._devices)
            self._selected[number] = [place for place, device in devices if device.states[number] != NOT_SELECTED]
        return self._selected[number]

    def _allocate_all(self, index: int, indexed: IndexedRequest) -> int:
        places = self._selected_by(indexed)
        outcome, have = _NONE, 0
        for place in places:
            self._budget.spend()
            if not self._allocate(index, indexed, place):
                break
            have += 1
        else:
            outcome = self.choose(index + 1)
        if outcome != _FOUND:
            for place in reversed(places[:have]):
                self._deallocate(index, indexed, place)
        return outcome

    def _allocate(self, index: int, indexed: IndexedRequest, place: int) -> bool:
        device, claim = self._devices[place], self._choices[index].claim
        if self._is_in_use(index, indexed, place) or not self._consume_counters(device):
            return False
        if device.states[indexed.number] == TAINTED or not self._add_to_constraints(indexed, device):
            if not self._leaks_counters:
                self._restore_counters(device)
            return False
        if not self._has_capacity(indexed, place):
            if not self._leaks_counters:
                self._remove_from_constraints(indexed, indexed.constraints)
            return False
        if device.consumed_capacity is None:
            self._used.setdefault(place, set()).add(claim)
        else:
            before = self._shared.get(place, [0] * len(device.free_capacity))
            added = device.consumed_capacity[indexed.number]
            self._shared[place] = [one + other for one, other in zip(before, added, strict=True)]
        self._counts[claim] += 1
        return True

    def _deallocate(self, index: int, indexed: IndexedRequest, place: int) -> None:
        device, claim = self._devices[place], self._choices[index].claim
        self._remove_from_constraints(indexed, indexed.constraints)
        if device.consumed_capacity is None:
            self._used[place].discard(claim)
            self._restore_counters(device)
        else:
            added = device.consumed_capacity[indexed.number]
            self._shared[place] = [one - other for one, other in zip(self._shared[place], added, strict=True)]
        self._counts[claim] -= 1

    def _is_in_use(self, index: int, indexed: IndexedRequest, place: int) -> bool:
        """Return whether the device is in use for the request. A request with admin access ignores other claims."""
        used = self._used.get(place, ())
        if indexed.request.is_admin:
            return self._choices[index].claim in used
        return bool(used) or self._devices[place].states[indexed.number] == ALLOCATED

    def _has_capacity(self, indexed: IndexedRequest, place: int) -> bool:
        device = self._devices[place]
        shared = self._shared.get(place)
        if device.consumed_capacity is None or shared is None:
            return True
        needed = device.consumed_capacity[indexed.number]
        return all(
            have + more <= free_capacity
            for have, more, free_capacity in zip(shared, needed, device.free_capacity, strict=True)
        )

    def _consume_counters(self, device: Candidate) -> bool:
        """Consume the counters of `device` if its pool has enough. Return whether it has enough."""
        if not device.counters:
            return True
        consumed = self._consumed[device.pool]
        for place, amount in device.counters:
            consumed[place] += amount
        if all(more <= most for more, most in zip(consumed, self._free_counters[device.pool], strict=True)):
            return True
        self._restore_counters(device)
        return False

    def _restore_counters(self, device: Candidate) -> None:
        for place, amount in device.counters:
            self._consumed[device.pool][place] -= amount

    def _add_to_constraints(self, indexed: IndexedRequest, device: Candidate) -> bool:
        """Add the device to all constraints, or to none if one does not allow it. Return whether it was added."""
        for position, place in enumerate(indexed.constraints):
            if not self._constraint_states[place].add(indexed.request.name, device.values[place]):
                if indexed.request.takes_all:
                    raise SearchAbortedError
                self._remove_from_constraints(indexed, indexed.constraints[:position])
                return False
        return True

    def _remove_from_constraints(self, indexed: IndexedRequest, constraints: Sequence[int]) -> None:
        for place in constraints:
            self._constraint_states[place].remove(indexed.request.name)
