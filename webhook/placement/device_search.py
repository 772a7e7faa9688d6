"""Whether the devices of a node are enough for some claims: kube-scheduler's search for an allocation, bounded.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhook.cluster.deadline import DeadlineNearError, Expired, never
from webhook.cluster.device import AttributeValue
from webhook.cluster.device_claim import DeviceRequest

# What a request makes of a device: it does not take it, it would but the device is not to be had, it can have it.
REFUSED, TAKEN, FREE = range(3)

# Source: k8s.io/api/resource/v1/types.go, AllocationResultsMaxSize
MOST_DEVICES_OF_A_CLAIM = 32
# More devices than a search can go through for one pod.
MOST_DEVICES_OF_A_POD = 256
# So many steps are made for one pod: most nodes need as many as the pod asks for devices.
MOST_STEPS = 100_000
_STEPS_IN_NO_TIME = 1_000


class GivenUpError(Exception):
    """What kube-scheduler does is not known: the search is too long, or kube-scheduler ends it with an error."""


class Candidate(NamedTuple):
    """What counts about a device: what each request makes of it, and its value for each constraint."""

    states: tuple[int, ...]
    values: tuple[AttributeValue | None, ...]


class Wanted(NamedTuple):
    """A request. `number` is its place in `Candidate.states`; `constraints` are places in `Candidate.values`."""

    request: DeviceRequest
    number: int
    constraints: tuple[int, ...]


class Choice(NamedTuple):
    """One request, or a list of which the first is taken that can be had; of the claim with the number `claim`."""

    wanted: tuple[Wanted, ...]
    claim: int


@dataclass(slots=True)
class Budget:
    """How many steps are left, and whether there is time; shared by all nodes."""

    steps: int = MOST_STEPS
    expired: Expired = never

    def spend(self) -> None:
        """Take one.

        Raises:
            GivenUpError: none is left.
            DeadlineNearError: `expired()` holds.
        """
        self.steps -= 1
        if self.steps % _STEPS_IN_NO_TIME == 0 and self.expired():
            raise DeadlineNearError
        if self.steps < 0:
            raise GivenUpError


def allocate(choices: Sequence[Choice], devices: Sequence[Candidate], budget: Budget) -> tuple[int, ...] | None:
    """Which of its requests each of `choices` gets, None where the `devices` are not enough for all.

    Devices come in the order in which kube-scheduler looks at them, and so the first allocation is its own.

    Raises:
        GivenUpError: the budget is spent, or kube-scheduler gets an error.
        DeadlineNearError: the time is over.
    """
    search = _Search(choices, devices, budget)
    return tuple(search.chosen) if search.choose(0) else None


class _Search:
    def __init__(self, choices: Sequence[Choice], devices: Sequence[Candidate], budget: Budget) -> None:
        self._choices = choices
        self._devices = devices
        self._budget = budget
        self._used: set[int] = set()
        self._agreed: dict[int, list[AttributeValue]] = {}
        self._counts = {choice.claim: 0 for choice in choices}
        self.chosen = [0] * len(choices)

    def choose(self, index: int) -> bool:
        """Whether the choices from `index` on can all be had beside what is used."""
        if index == len(self._choices):
            return True
        for place, wanted in enumerate(self._choices[index].wanted):
            self.chosen[index] = place
            if self._all(index, wanted) if wanted.request.takes_all else self._some(index, wanted, 0, 0):
                return True
        return False

    def _some(self, index: int, wanted: Wanted, have: int, start: int) -> bool:
        """Find the devices that are missing among those from `start` on, and then whatever else is asked for.

        A device like one with which that did not work is passed over: it would not work with it either.
        """
        if have == wanted.request.amount:
            return self.choose(index + 1)
        failed: set[Candidate] = set()
        for place in range(start, len(self._devices)):
            device = self._devices[place]
            if device.states[wanted.number] != FREE or place in self._used or device in failed:
                continue
            self._budget.spend()
            if self._take(index, wanted, place):
                if self._some(index, wanted, have + 1, place + 1):
                    return True
                self._give_back(index, wanted, place)
            failed.add(device)
        return False

    def _all(self, index: int, wanted: Wanted) -> bool:
        places = [place for place, device in enumerate(self._devices) if device.states[wanted.number] != REFUSED]
        if not places:
            return False
        if any(place in self._used or self._devices[place].states[wanted.number] != FREE for place in places):
            return False
        for place in places:
            self._budget.spend()
            if not self._take(index, wanted, place):
                raise GivenUpError
        if self.choose(index + 1):
            return True
        for place in reversed(places):
            self._give_back(index, wanted, place)
        return False

    def _take(self, index: int, wanted: Wanted, place: int) -> bool:
        values = self._devices[place].values
        for constraint in wanted.constraints:
            value, agreed = values[constraint], self._agreed.get(constraint)
            if value is None or (agreed and agreed[-1] != value):
                return False
        claim = self._choices[index].claim
        if self._counts[claim] == MOST_DEVICES_OF_A_CLAIM:
            raise GivenUpError
        for constraint in wanted.constraints:
            value = values[constraint]
            if value is not None:
                self._agreed.setdefault(constraint, []).append(value)
        self._counts[claim] += 1
        self._used.add(place)
        return True

    def _give_back(self, index: int, wanted: Wanted, place: int) -> None:
        for constraint in wanted.constraints:
            self._agreed[constraint].pop()
        self._counts[self._choices[index].claim] -= 1
        self._used.discard(place)
