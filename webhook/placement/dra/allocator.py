"""Whether the devices of a node are enough for some claims: kube-scheduler's search for an allocation, bounded.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from webhook.cluster.dra.device import AttributeValue
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.placement.dra.constraints import AttributeRule, ConstraintState
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget

# What a request makes of a device: it does not select it, or it does and the device is another claim's, is tainted,
# can be had.
REFUSED, TAKEN, TAINTED, FREE = range(4)

# Source: k8s.io/api/resource/v1/types.go, AllocationResultsMaxSize
MOST_DEVICES_OF_A_CLAIM = 32
# More devices than a search can go through for one pod.
MOST_DEVICES_OF_A_POD = 256
# How a part of the search ends; the last: a claim would get more devices than it can have.
_FOUND, _NONE, _EXCEEDED = range(3)


class Candidate(NamedTuple):
    """What counts about a device: what each request makes of it, and its value for each constraint.

    A device that can be allocated several times has `shares`: what each request consumes of its capacities, of which
    there is `room` for so much. `counters` are the amounts that it consumes of the counters of the pool in place
    `pool` among those of its node, each with the counter's place there.
    """

    states: tuple[int, ...]
    values: tuple[AttributeValue | None, ...]
    shares: tuple[tuple[int, ...], ...] | None = None
    room: tuple[int, ...] = ()
    pool: int = -1
    counters: tuple[tuple[int, int], ...] = ()


class IndexedRequest(NamedTuple):
    """A request. `number` is its place in `Candidate.states`; `constraints` are places in `Candidate.values`."""

    request: DeviceRequest
    number: int
    constraints: tuple[int, ...]


class Choice(NamedTuple):
    """One request, or a list of which the first is taken that can be had; of the claim with the number `claim`."""

    wanted: tuple[IndexedRequest, ...]
    claim: int


class AvailableDevices(NamedTuple):
    """The devices of a node, in the order in which kube-scheduler looks at them, and what pools have of counters."""

    devices: Sequence[Candidate]
    counters: Sequence[tuple[int, ...]] = ()


def allocate(
    choices: Sequence[Choice],
    rules: Sequence[AttributeRule],
    stock: AvailableDevices,
    budget: StepBudget,
    *,
    leaks: bool = True,
) -> tuple[int, ...] | None:
    """Return which of its requests each of `choices` gets; None where the `stock` is not enough for all.

    kube-scheduler does not give back the counters of a device that it passes over for a taint or a constraint;
    without `leaks` they are given back, and the answer is whether an allocation may be found in any state.

    Raises:
        SearchAbortedError: the budget is spent, or kube-scheduler gets an error.
        DeadlineNearError: the time is over.
    """
    search = _Search(choices, rules, stock, budget, leaks=leaks)
    for _, of_claim in groupby(choices, key=lambda choice: choice.claim):
        if sum(min(map(search.number_of, choice.wanted)) for choice in of_claim) > MOST_DEVICES_OF_A_CLAIM:
            raise SearchAbortedError
    outcome = search.choose(0)
    if outcome == _EXCEEDED:
        raise SearchAbortedError
    return tuple(search.chosen) if outcome == _FOUND else None


class _Search:
    def __init__(
        self,
        choices: Sequence[Choice],
        rules: Sequence[AttributeRule],
        stock: AvailableDevices,
        budget: StepBudget,
        *,
        leaks: bool,
    ) -> None:
        self._choices = choices
        self._devices = stock.devices
        self._available = stock.counters
        self._budget = budget
        self._leaks = leaks
        self._places: dict[int, list[int]] = {}
        self._agreements = [ConstraintState(rule) for rule in rules]
        self._used: dict[int, set[int]] = {}
        self._consumed = [[0] * len(each) for each in stock.counters]
        self._shared: dict[int, list[int]] = {}
        self._counts = {choice.claim: 0 for choice in choices}
        # Where nothing but the number of devices alike counts, one that failed stands for all that are like it.
        self._is_plain = (
            not any(rule.is_distinct for rule in rules)
            and not any(device.shares is not None or device.counters for device in stock.devices)
            and not any(wanted.request.is_admin for choice in choices for wanted in choice.wanted)
        )
        self.chosen = [0] * len(choices)

    def number_of(self, wanted: IndexedRequest) -> int:
        """Return how many devices are needed for the request."""
        return len(self._all_of(wanted)) if wanted.request.takes_all else wanted.request.amount

    def choose(self, index: int) -> int:
        """Find devices for the choices from `index` on beside what is used."""
        if index == len(self._choices):
            return _FOUND
        outcome = self._choose_one(index)
        before = self._choices[index - 1].claim if index else 0
        # That a claim would get too many devices is of no matter to the claim before it.
        return _NONE if outcome == _EXCEEDED and self._choices[index].claim != before else outcome

    def _choose_one(self, index: int) -> int:
        has_exceeded = True
        for place, wanted in enumerate(self._choices[index].wanted):
            self.chosen[index] = place
            outcome = self._request(index, wanted)
            if outcome == _FOUND:
                return _FOUND
            has_exceeded &= outcome == _EXCEEDED
        return _EXCEEDED if has_exceeded else _NONE

    def _request(self, index: int, wanted: IndexedRequest) -> int:
        number = self.number_of(wanted)
        if not number:
            return _NONE
        if self._counts[self._choices[index].claim] + number > MOST_DEVICES_OF_A_CLAIM:
            return _EXCEEDED
        return self._all(index, wanted) if wanted.request.takes_all else self._some(index, wanted, 0, 0)

    def _some(self, index: int, wanted: IndexedRequest, have: int, start: int) -> int:
        """Find the devices that are missing among those from `start` on, and then whatever else is asked for."""
        if have == wanted.request.amount:
            return self.choose(index + 1)
        failed: set[Candidate] = set()
        places = self._all_of(wanted)
        for position in range(start, len(places)):
            self._budget.look(position)
            place = places[position]
            device = self._devices[place]
            if not self._is_in_question(index, wanted, place) or device in failed:
                continue
            self._budget.spend()
            if self._take(index, wanted, place):
                outcome = self._some(index, wanted, have + 1, position + 1)
                if outcome == _FOUND:
                    return _FOUND
                self._give_back(index, wanted, place)
                if outcome == _EXCEEDED:
                    return _EXCEEDED
            if self._is_plain:
                failed.add(device)
        return _NONE

    def _is_in_question(self, index: int, wanted: IndexedRequest, place: int) -> bool:
        device = self._devices[place]
        if device.states[wanted.number] == TAINTED and self._is_plain:
            return False
        return not self._is_in_use(index, wanted, place) and self._has_room(wanted, place)

    def _all_of(self, wanted: IndexedRequest) -> list[int]:
        number = wanted.number
        if number not in self._places:
            devices = enumerate(self._devices)
            self._places[number] = [place for place, device in devices if device.states[number] != REFUSED]
        return self._places[number]

    def _all(self, index: int, wanted: IndexedRequest) -> int:
        places = self._all_of(wanted)
        outcome, have = _NONE, 0
        for place in places:
            self._budget.spend()
            if not self._take(index, wanted, place):
                break
            have += 1
        else:
            outcome = self.choose(index + 1)
        if outcome != _FOUND:
            for place in reversed(places[:have]):
                self._give_back(index, wanted, place)
        return outcome

    def _take(self, index: int, wanted: IndexedRequest, place: int) -> bool:
        device, claim = self._devices[place], self._choices[index].claim
        if self._is_in_use(index, wanted, place) or not self._consume(device):
            return False
        if device.states[wanted.number] == TAINTED or not self._agree(wanted, device):
            if not self._leaks:
                self._give_back_counters(device)
            return False
        if not self._has_room(wanted, place):
            if not self._leaks:
                self._disagree(wanted, wanted.constraints)
            return False
        if device.shares is None:
            self._used.setdefault(place, set()).add(claim)
        else:
            before = self._shared.get(place, [0] * len(device.room))
            added = device.shares[wanted.number]
            self._shared[place] = [one + other for one, other in zip(before, added, strict=True)]
        self._counts[claim] += 1
        return True

    def _give_back(self, index: int, wanted: IndexedRequest, place: int) -> None:
        device, claim = self._devices[place], self._choices[index].claim
        self._disagree(wanted, wanted.constraints)
        if device.shares is None:
            self._used[place].discard(claim)
            self._give_back_counters(device)
        else:
            added = device.shares[wanted.number]
            self._shared[place] = [one - other for one, other in zip(self._shared[place], added, strict=True)]
        self._counts[claim] -= 1

    def _is_in_use(self, index: int, wanted: IndexedRequest, place: int) -> bool:
        """Return whether the request may not have the device; an administrator's may have any, but not twice."""
        used = self._used.get(place, ())
        if wanted.request.is_admin:
            return self._choices[index].claim in used
        return bool(used) or self._devices[place].states[wanted.number] == TAKEN

    def _has_room(self, wanted: IndexedRequest, place: int) -> bool:
        device = self._devices[place]
        shared = self._shared.get(place)
        if device.shares is None or shared is None:
            return True
        needed = device.shares[wanted.number]
        return all(have + more <= room for have, more, room in zip(shared, needed, device.room, strict=True))

    def _consume(self, device: Candidate) -> bool:
        """Consume the counters of `device`, where no counter of its pool comes to be short."""
        if not device.counters:
            return True
        consumed = self._consumed[device.pool]
        for place, amount in device.counters:
            consumed[place] += amount
        if all(more <= most for more, most in zip(consumed, self._available[device.pool], strict=True)):
            return True
        self._give_back_counters(device)
        return False

    def _give_back_counters(self, device: Candidate) -> None:
        for place, amount in device.counters:
            self._consumed[device.pool][place] -= amount

    def _agree(self, wanted: IndexedRequest, device: Candidate) -> bool:
        """Enter the device into the constraints; none of them where one does not allow it.

        Raises:
            SearchAbortedError: all devices are asked for, which kube-scheduler takes for an error of the claim.
        """
        for position, place in enumerate(wanted.constraints):
            if not self._agreements[place].add(wanted.request.name, device.values[place]):
                if wanted.request.takes_all:
                    raise SearchAbortedError
                self._disagree(wanted, wanted.constraints[:position])
                return False
        return True

    def _disagree(self, wanted: IndexedRequest, constraints: Sequence[int]) -> None:
        for place in constraints:
            self._agreements[place].remove(wanted.request.name)
