"""So many steps and looks are made for one pod, and the time is asked for now and then."""

import pytest

from webhook.kube.deadline import DeadlineNearError
from webhook.placement.dra.step_budget import SearchAbortedError, StepBudget


def test_budget_is_spent_after_as_many_steps_as_it_has() -> None:
    budget = StepBudget(steps=3)
    for _ in range(3):
        budget.spend()
    with pytest.raises(SearchAbortedError):
        budget.spend()


def test_time_is_asked_for_once_in_a_hundred_steps() -> None:
    asked: list[int] = []

    def expired() -> bool:
        asked.append(budget.steps)
        return len(asked) == 4

    budget = StepBudget(steps=350, expired=expired)
    for _ in range(349):
        budget.spend()
    assert asked == [300, 200, 100]
    with pytest.raises(DeadlineNearError):
        budget.spend()


def test_one_look_in_a_thousand_is_counted() -> None:
    budget = StepBudget(inspections=2)
    for position in range(2_999):
        budget.inspect(position)
    assert budget.inspections == 0
    with pytest.raises(SearchAbortedError):
        budget.inspect(2_999)


def test_time_is_asked_for_at_a_look_that_is_counted() -> None:
    budget = StepBudget(expired=lambda: True)
    budget.inspect(998)
    with pytest.raises(DeadlineNearError):
        budget.inspect(999)
