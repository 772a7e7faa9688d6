"""The bounds of the work for one admission."""

import pytest

from tests.support.server import Clock
from webhook.kube.deadline import BudgetSpentError, in_time
from webhook.serving.work_budget import Effort, TurnEndedError


def effort(
    deadline_seconds: float | None = None, budget_milliseconds: int = 150, turn_seconds: float | None = None
) -> tuple[Effort, Clock, Clock]:
    clock, worked = Clock(), Clock(0.0)
    made = Effort(
        deadline_seconds,
        budget_milliseconds,
        # No thread works for longer than time passes.
        monotonic_seconds=lambda: clock() + worked(),
        worked_seconds=worked,
        turn_seconds=turn_seconds,
    )
    return made, clock, worked


def test_without_bounds_in_sight_work_goes_on() -> None:
    made, clock, worked = effort(turn_seconds=1.0)
    for _time in range(10):
        assert made() is False
        clock.seconds += 100
        worked.seconds += 0.01
    assert (made.is_over, made.is_spent) == (False, False)


def test_it_expires_at_the_deadline_not_before() -> None:
    made, clock, _ = effort(deadline_seconds=1010.0)
    clock.seconds = 1009.999
    assert made() is False
    assert made.is_over is False
    clock.seconds = 1010.0
    assert made() is True
    assert made.is_over is True


def test_the_budget_counts_from_the_first_question() -> None:
    made, _, worked = effort(budget_milliseconds=150)
    worked.seconds = 7.0
    assert made() is False
    worked.seconds = 7.149
    assert made() is False
    worked.seconds = 7.1501
    with pytest.raises(BudgetSpentError, match=r"^the work budget of 150 ms is spent: not every plugin was asked$"):
        made()
    assert (made.is_over, made.is_spent) == (False, True)


def test_waiting_for_others_is_no_work() -> None:
    made, clock, worked = effort(turn_seconds=0.01)
    assert made() is False
    clock.seconds += 5
    worked.seconds = 0.0099
    assert made() is False
    worked.seconds = 0.0101
    with pytest.raises(TurnEndedError):
        made()


def test_a_turn_ends_before_the_budget_and_the_budget_before_a_longer_turn() -> None:
    made, _, worked = effort(turn_seconds=0.01)
    assert made() is False
    worked.seconds = 0.011
    with pytest.raises(TurnEndedError):
        made()
    made, _, worked = effort(budget_milliseconds=5, turn_seconds=0.01)
    assert made() is False
    worked.seconds = 0.011
    with pytest.raises(BudgetSpentError):
        made()


def test_what_is_abandoned_ends_whatever_else_holds() -> None:
    made, clock, _ = effort(deadline_seconds=1000.0)
    clock.seconds = 2000.0
    made.abandoned = True
    with pytest.raises(TurnEndedError):
        made()


def test_a_spent_budget_ends_a_loop() -> None:
    made, _, worked = effort(budget_milliseconds=10)
    seen = []

    def count(number: int) -> None:
        seen.append(number)
        worked.seconds += 0.003

    with pytest.raises(BudgetSpentError):
        list(map(count, in_time(range(1000), made)))
    assert seen == [0, 1, 2, 3]


def test_a_budget_of_150_ms_is_spent_after_150_ms() -> None:
    clock = Clock(0.0)
    made = Effort(None, 150, monotonic_seconds=clock, worked_seconds=clock)
    assert made() is False
    clock.seconds = 0.149
    assert made() is False
    clock.seconds = 0.15
    with pytest.raises(BudgetSpentError, match="150 ms"):
        made()
