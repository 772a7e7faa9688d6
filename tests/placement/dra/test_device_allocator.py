"""The search for devices is bounded, and ends as kube-scheduler's does."""

from functools import partial

import pytest

from tests.placement.dra.chosen import choice_for
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.kube.deadline import DeadlineNearError
from webhook.placement.dra.constraints import AttributeRule
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


def _stock(count: int, state: int, **fields: object) -> list[Candidate]:
    return [Candidate((state,) * 4, (), **fields)] * count  # type: ignore[arg-type] # fields of any type


def test_devices_that_are_passed_over_are_counted_now_and_then() -> None:
    taken = _stock(3_000, ALLOCATED)
    choice = choice_for(DeviceRequest("r", "gpu"))
    assert allocate([choice], [], taken, StepBudget()) is None
    with pytest.raises(DeadlineNearError):
        allocate([choice], [], taken, StepBudget(expired=lambda: True))
    with pytest.raises(SearchAbortedError):
        allocate([choice], [], taken, StepBudget(inspections=2))


def test_claim_that_gets_too_many_devices_by_any_alternative_is_an_error() -> None:
    first = choice_for(DeviceRequest("a", "gpu", amount=20))
    second = choice_for(DeviceRequest("b/x", "gpu", amount=13), DeviceRequest("b/y", "gpu", amount=2), first=1)
    assert allocate([first, second], [], _stock(40, FREE), StepBudget()) == (0, 1)
    third = choice_for(DeviceRequest("c", "gpu", amount=11), first=3)
    with pytest.raises(SearchAbortedError):
        allocate([first, second, third], [], _stock(40, FREE), StepBudget())


def test_devices_that_are_given_back_do_not_count_for_the_limit_of_a_claim() -> None:
    """The first alternative takes all devices of the second request, so it is given up."""
    some, one = DeviceRequest("a/some", "gpu", amount=31), DeviceRequest("a/one", "gpu")
    first, second = choice_for(some, one), choice_for(DeviceRequest("b", "gpu"), first=2)
    cards = [Candidate((FREE, NOT_SELECTED, FREE), ())] * 31
    others = [Candidate((NOT_SELECTED, FREE, NOT_SELECTED), ())]

    assert allocate([first, second], [], [*cards, *others], StepBudget()) == (1, 0)


def test_a_claim_with_too_many_devices_leaves_the_claim_before_it_to_try_on() -> None:
    """All alternatives of the second claim are too many beside its first request: that is no error for the first."""
    first = choice_for(DeviceRequest("a", "gpu"))
    second = choice_for(DeviceRequest("b/x", "gpu", amount=1), DeviceRequest("b/y", "gpu", amount=20), claim=1, first=1)
    third = choice_for(DeviceRequest("c", "gpu", amount=31), claim=1, first=3)
    assert allocate([first, second, third], [], _stock(40, FREE), StepBudget()) == (0, 0, 0)
    assert allocate([first, second, third], [], _stock(20, FREE), StepBudget()) is None


def test_a_request_for_all_devices_needs_one() -> None:
    every = choice_for(DeviceRequest("r/all", "gpu", takes_all=True), DeviceRequest("r/one", "gpu"))
    none, some = Candidate((NOT_SELECTED, FREE), ()), Candidate((FREE, FREE), ())
    assert [allocate([every], [], [each], StepBudget()) for each in (none, some)] == [(1,), (0,)]


def test_counters_of_a_tainted_device_are_given_back_since_1_37() -> None:
    """kube-scheduler consumes them before it looks at taints."""
    tainted = Candidate((TAINTED,), (), pool=0, counters=((0, 2),))
    free = Candidate((FREE,), (), pool=0, counters=((0, 2),))
    choice = choice_for(DeviceRequest("r", "gpu"))
    search = partial(allocate, [choice], [], [tainted, free], StepBudget(), free_counters=[(3,)])
    assert search(leaks_counters=True) is None
    assert search() == (0,)


@pytest.mark.parametrize("shares", [False, True], ids=["devices", "access of an administrator"])
def test_equal_devices_are_tried_once(shares: bool) -> None:
    """Else a search without a result takes a step for each pair of the ten devices."""
    pair = choice_for(DeviceRequest("pair", "gpu", amount=2, is_admin=shares))
    none = Choice((IndexedRequest(DeviceRequest("none", "gpu"), 3, ()),), 1)
    device = Candidate((FREE, FREE, FREE, ALLOCATED), ())
    assert allocate([pair, none], [], [device] * 10, StepBudget(steps=5)) is None


@pytest.mark.parametrize(
    ("fields", "device"),
    [
        pytest.param({}, {}, id="whole devices"),
        pytest.param({"is_admin": True}, {}, id="access of an administrator"),
        pytest.param({}, {"consumed_capacity": ((1,),), "free_capacity": (4,)}, id="shares of devices"),
    ],
)
def test_request_gets_each_device_once(fields: dict[str, bool], device: dict[str, object]) -> None:
    two = choice_for(DeviceRequest("r", "gpu", amount=2, **fields))  # type: ignore[arg-type] # fields of any type
    assert allocate([two], [], _stock(1, FREE, **device), StepBudget()) is None
    assert allocate([two], [], _stock(2, FREE, **device), StepBudget()) == (0,)


@pytest.mark.parametrize("takes_all", [False, True])
def test_each_device_that_is_tried_is_a_step(takes_all: bool) -> None:
    choice = choice_for(DeviceRequest("r", "gpu", amount=3, takes_all=takes_all))
    assert allocate([choice], [], _stock(3, FREE), StepBudget(steps=3)) == (0,)
    with pytest.raises(SearchAbortedError):
        allocate([choice], [], _stock(3, FREE), StepBudget(steps=2))


def test_a_device_that_is_given_back_gives_its_counters_back() -> None:
    """The first request has to leave the larger device to the second, and then takes the smaller one."""
    large = Candidate((FREE, FREE), (), pool=0, counters=((0, 2),))
    small = Candidate((FREE, NOT_SELECTED), (), pool=0, counters=((0, 1),))
    choices = [choice_for(DeviceRequest("a", "gpu")), choice_for(DeviceRequest("b", "gpu"), first=1)]

    assert allocate(choices, [], [large, small], StepBudget(), free_counters=[(3,)]) == (0, 0)
    assert allocate(choices, [], [large, small], StepBudget(), free_counters=[(2,)]) is None


def test_a_device_without_capacity_left_counts_for_no_constraint() -> None:
    """The first request leaves nothing for one of all devices; the alternative to it has another value."""
    shared = Candidate((FREE, FREE, NOT_SELECTED), (("string", "x"),), ((1,), (1,), (0,)), (1,))
    other = Candidate((NOT_SELECTED, NOT_SELECTED, FREE), (("string", "y"),))
    every, one = DeviceRequest("b/all", "gpu", takes_all=True), DeviceRequest("b/one", "gpu")
    choices = [choice_for(DeviceRequest("a", "gpu")), choice_for(every, one, first=1, constraints=(0,))]

    assert allocate(choices, [AttributeRule("model", is_distinct=False)], [shared, other], StepBudget()) == (0, 1)


def test_a_device_that_one_constraint_rejects_counts_for_no_other() -> None:
    rules = [AttributeRule("model", is_distinct=False), AttributeRule("rack", is_distinct=False)]
    texts = ("string", "x"), ("string", "y")
    devices = [Candidate((FREE,), values) for values in ((texts[0], None), (texts[1], texts[1]))]

    assert allocate([choice_for(DeviceRequest("r", "gpu"), constraints=(0, 1))], rules, devices, StepBudget()) == (0,)


def test_access_of_an_administrator_does_not_need_a_device_that_no_other_claim_of_the_pod_has() -> None:
    admin = DeviceRequest("admin", "gpu", is_admin=True)
    own, watching = choice_for(DeviceRequest("own", "gpu")), choice_for(admin, claim=1, first=1)

    assert allocate([own, watching], [], _stock(1, FREE), StepBudget()) == (0, 0)
    twice = choice_for(admin, claim=1, first=2)
    assert allocate([own, watching, twice], [], _stock(1, FREE), StepBudget()) is None
