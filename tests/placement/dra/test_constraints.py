"""Constraints of claims on one attribute of devices."""

import pytest

from tests.placement.dra.chosen import choice_for
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.placement.dra.constraints import AttributeRule, ConstraintState
from webhook.placement.dra.device_allocator import (
    FREE,
    NOT_SELECTED,
    Candidate,
    allocate,
)
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget


def test_a_constraint_that_breaks_for_all_devices_is_an_error() -> None:
    devices = [Candidate((FREE,), (("int", number),)) for number in range(2)]
    choice = choice_for(DeviceRequest("r", "gpu", takes_all=True), constraints=(0,))
    with pytest.raises(SearchAbortedError):
        allocate([choice], [AttributeRule("numa", is_distinct=False)], devices, StepBudget())


def test_a_constraint_that_breaks_for_all_devices_is_an_error_beside_any_equal_device() -> None:
    """With the first device in use, the search ends before the second, whose value differs; with the third, at it."""
    devices = [Candidate((FREE, FREE), (("int", 0),)), Candidate((NOT_SELECTED, FREE), (("int", 1),))]
    one = choice_for(DeviceRequest("one", "gpu"))
    every = choice_for(DeviceRequest("all", "gpu", takes_all=True), claim=1, first=1, constraints=(0,))
    with pytest.raises(SearchAbortedError):
        allocate([one, every], [AttributeRule("numa", is_distinct=False)], [*devices, devices[0]], StepBudget())


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
