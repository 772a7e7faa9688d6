"""The search for devices is bounded, and ends as kube-scheduler's does."""

from functools import partial

import pytest

from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.kube.deadline import DeadlineNearError
from webhook.placement.dra.constraints import AttributeRule, ConstraintState
from webhook.placement.dra.device_allocator import (
    ALLOCATED,
    FREE,
    NOT_SELECTED,
    TAINTED,
    Candidate,
    Choice,
    IndexedRequest,
    allocate,
)
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget


def _choice(*requests: DeviceRequest, claim: int = 0, first: int = 0, constraints: tuple[int, ...] = ()) -> Choice:
    return Choice(
        tuple(IndexedRequest(each, number, constraints) for number, each in enumerate(requests, first)), claim
    )


def _stock(count: int, state: int, **fields: object) -> list[Candidate]:
    return [Candidate((state,) * 4, (), **fields)] * count  # type: ignore[arg-type] # fields of any type


def test_devices_that_are_passed_over_are_counted_now_and_then() -> None:
    taken = _stock(3_000, ALLOCATED)
    choice = _choice(DeviceRequest("r", "gpu"))
    assert allocate([choice], [], taken, StepBudget()) is None
    with pytest.raises(DeadlineNearError):
        allocate([choice], [], taken, StepBudget(expired=lambda: True))
    with pytest.raises(SearchAbortedError):
        allocate([choice], [], taken, StepBudget(inspections=2))


def test_claim_that_gets_too_many_devices_by_any_alternative_is_an_error() -> None:
    first = _choice(DeviceRequest("a", "gpu", amount=20))
    second = _choice(DeviceRequest("b/x", "gpu", amount=13), DeviceRequest("b/y", "gpu", amount=2), first=1)
    assert allocate([first, second], [], _stock(40, FREE), StepBudget()) == (0, 1)
    third = _choice(DeviceRequest("c", "gpu", amount=11), first=3)
    with pytest.raises(SearchAbortedError):
        allocate([first, second, third], [], _stock(40, FREE), StepBudget())


def test_a_claim_with_too_many_devices_leaves_the_claim_before_it_to_try_on() -> None:
    """All alternatives of the second claim are too many beside its first request: that is no error for the first."""
    first = _choice(DeviceRequest("a", "gpu"))
    second = _choice(DeviceRequest("b/x", "gpu", amount=1), DeviceRequest("b/y", "gpu", amount=20), claim=1, first=1)
    third = _choice(DeviceRequest("c", "gpu", amount=31), claim=1, first=3)
    assert allocate([first, second, third], [], _stock(40, FREE), StepBudget()) == (0, 0, 0)
    assert allocate([first, second, third], [], _stock(20, FREE), StepBudget()) is None


def test_counters_of_a_tainted_device_are_given_back_since_1_37() -> None:
    """kube-scheduler consumes them before it looks at taints."""
    tainted = Candidate((TAINTED,), (), pool=0, counters=((0, 2),))
    free = Candidate((FREE,), (), pool=0, counters=((0, 2),))
    choice = _choice(DeviceRequest("r", "gpu"))
    search = partial(allocate, [choice], [], [tainted, free], StepBudget(), free_counters=[(3,)])
    assert search(leaks_counters=True) is None
    assert search() == (0,)


def test_a_constraint_that_breaks_for_all_devices_is_an_error() -> None:
    devices = [Candidate((FREE,), (("int", number),)) for number in range(2)]
    choice = _choice(DeviceRequest("r", "gpu", takes_all=True), constraints=(0,))
    with pytest.raises(SearchAbortedError):
        allocate([choice], [AttributeRule("numa", is_distinct=False)], devices, StepBudget())


def test_a_constraint_that_breaks_for_all_devices_is_an_error_beside_any_equal_device() -> None:
    """With the first device in use, the search ends before the second, whose value differs; with the third, at it."""
    devices = [Candidate((FREE, FREE), (("int", 0),)), Candidate((NOT_SELECTED, FREE), (("int", 1),))]
    one = _choice(DeviceRequest("one", "gpu"))
    every = _choice(DeviceRequest("all", "gpu", takes_all=True), claim=1, first=1, constraints=(0,))
    with pytest.raises(SearchAbortedError):
        allocate([one, every], [AttributeRule("numa", is_distinct=False)], [*devices, devices[0]], StepBudget())


@pytest.mark.parametrize("shares", [False, True], ids=["devices", "access of an administrator"])
def test_equal_devices_are_tried_once(shares: bool) -> None:
    """Else a search without a result takes a step for each pair of the ten devices."""
    pair = _choice(DeviceRequest("pair", "gpu", amount=2, is_admin=shares))
    none = Choice((IndexedRequest(DeviceRequest("none", "gpu"), 3, ()),), 1)
    device = Candidate((FREE, FREE, FREE, ALLOCATED), ())
    assert allocate([pair, none], [], [device] * 10, StepBudget(steps=5)) is None


def test_distinct_values_are_those_of_all_devices() -> None:
    agreement = ConstraintState(AttributeRule("numa", is_distinct=True), compares_all=True)
    assert agreement.add("r/x", ("int", 1))
    assert agreement.add("r/x", ("int", 2))
    assert not agreement.add("r/x", ("int", 1))
    agreement.remove("r/x")
    assert not agreement.add("s", ("int", 1))
    assert agreement.add("s", ("int", 2))


def test_distinct_values_are_forgotten_as_kube_scheduler_forgets_them_before_1_37() -> None:
    agreement = ConstraintState(AttributeRule("numa", is_distinct=True), compares_all=False)
    assert agreement.add("r/x", ("int", 1))
    assert not agreement.add("s", ("int", 1))
    assert agreement.add("r/x", ("int", 2))
    assert agreement.add("r/x", ("int", 1)), "of one request, the last device's value alone is kept"
    agreement.remove("r/x")
    assert agreement.add("s", ("int", 2)), "with the last device, the value of the request is gone"
    assert not agreement.add("s", None)


def test_devices_agree_in_a_value_as_long_as_one_has_it() -> None:
    agreement = ConstraintState(AttributeRule("numa", is_distinct=False), compares_all=True)
    assert agreement.add("r", ("int", 1))
    assert not agreement.add("s", ("int", 2))
    assert agreement.add("s", ("int", 1))
    agreement.remove("s")
    assert not agreement.add("s", ("int", 2))
    agreement.remove("r")
    assert agreement.add("s", ("int", 2))


def test_value_of_a_request_without_devices_is_free_for_others() -> None:
    agreement = ConstraintState(AttributeRule("numa", is_distinct=True), compares_all=True)
    assert agreement.add("r", ("int", 1))
    assert agreement.add("s/x", ("int", 2))
    agreement.remove("s/x")
    assert not agreement.add("t", ("int", 1)), "r still has it"
    assert agreement.add("t", ("int", 2))


@pytest.mark.parametrize(
    ("fields", "device"),
    [
        pytest.param({}, {}, id="whole devices"),
        pytest.param({"is_admin": True}, {}, id="access of an administrator"),
        pytest.param({}, {"consumed_capacity": ((1,),), "free_capacity": (4,)}, id="shares of devices"),
    ],
)
def test_request_gets_each_device_once(fields: dict[str, bool], device: dict[str, object]) -> None:
    two = _choice(DeviceRequest("r", "gpu", amount=2, **fields))  # type: ignore[arg-type] # fields of any type
    assert allocate([two], [], _stock(1, FREE, **device), StepBudget()) is None
    assert allocate([two], [], _stock(2, FREE, **device), StepBudget()) == (0,)


@pytest.mark.parametrize("takes_all", [False, True])
def test_each_device_that_is_tried_is_a_step(takes_all: bool) -> None:
    choice = _choice(DeviceRequest("r", "gpu", amount=3, takes_all=takes_all))
    assert allocate([choice], [], _stock(3, FREE), StepBudget(steps=3)) == (0,)
    with pytest.raises(SearchAbortedError):
        allocate([choice], [], _stock(3, FREE), StepBudget(steps=2))
