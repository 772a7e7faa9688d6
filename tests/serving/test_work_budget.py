"""The limits of the work for one admission."""

import pytest

from tests.support.servers.server import Clock
from webhook.kube.deadline import BudgetSpentError, in_time
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget


def make_budget(
    deadline_seconds: float | None = None, budget_milliseconds: int = 150, slice_seconds: float | None = None
) -> tuple[WorkBudget, Clock, Clock]:
    clock, worked = Clock(), Clock(0.0)
    made = WorkBudget(
        deadline_seconds,
        budget_milliseconds,
        # CPU time never exceeds wall time.
        monotonic_seconds=lambda: clock() + worked(),
        cpu_seconds=worked,
        slice_seconds=slice_seconds,
    )
    return made, clock, worked


def test_work_continues_below_the_limits() -> None:
    made, clock, worked = make_budget(slice_seconds=1.0)
    for _time in range(10):
        assert made() is False
        clock.seconds += 100
        worked.seconds += 0.01
    assert (made.is_expired, made.is_spent) == (False, False)


def test_it_expires_exactly_at_the_deadline() -> None:
    made, clock, _ = make_budget(deadline_seconds=1010.0)
    clock.seconds = 1009.999
    assert made() is False
    assert made.is_expired is False
    clock.seconds = 1010.0
    assert made() is True
    assert made.is_expired is True


@pytest.mark.parametrize("slice_seconds", [None, 0.05])
@pytest.mark.parametrize("deadline_milliseconds", [1, 2, 4, 6, 9, 12, 20, 31])
def test_a_deadline_in_the_middle_of_work_is_noticed_at_the_first_check_after_it(
    deadline_milliseconds: int, slice_seconds: float | None
) -> None:
    """Checks are cheap while no limit is near; the deadline is a limit in each phase of the work."""
    deadline_seconds = 1000 + deadline_milliseconds / 1000
    made, _, worked = make_budget(deadline_seconds, budget_milliseconds=100, slice_seconds=slice_seconds)
    found = []
    for milliseconds in range(deadline_milliseconds + 1):
        worked.seconds = deadline_seconds - 1000 if milliseconds == deadline_milliseconds else milliseconds / 1000
        found.append(made())
    assert found == [False] * deadline_milliseconds + [True]


def test_the_budget_counts_from_the_first_check() -> None:
    made, _, worked = make_budget(budget_milliseconds=150)
    for worked.seconds in (7.0, 7.006, 7.149):
        assert made() is False
    worked.seconds = 7.1511
    with pytest.raises(BudgetSpentError, match=r"^the work budget of 150 ms is spent: not every plugin was asked$"):
        made()
    assert (made.is_expired, made.is_spent) == (False, True)


def test_waiting_for_other_threads_is_not_work_but_for_the_first_moments() -> None:
    made, clock, worked = make_budget(slice_seconds=0.01)
    assert made() is False
    clock.seconds += 5
    assert made() is False
    clock.seconds += 5
    worked.seconds = 0.0049
    assert made() is False
    worked.seconds = 0.0051
    with pytest.raises(TimeSliceEndedError):
        made()


def test_the_shorter_of_time_slice_and_budget_ends_the_work() -> None:
    made, _, worked = make_budget(slice_seconds=0.01)
    for worked.seconds in (0.0, 0.006, 0.0105):
        assert made() is False
    worked.seconds = 0.0111
    with pytest.raises(TimeSliceEndedError):
        made()
    made, _, worked = make_budget(budget_milliseconds=5, slice_seconds=0.01)
    for worked.seconds in (0.0, 0.003):
        assert made() is False
    worked.seconds = 0.0056
    with pytest.raises(BudgetSpentError):
        made()


def test_an_abandoned_budget_stops_work_even_after_the_deadline() -> None:
    made, clock, _ = make_budget(deadline_seconds=1000.0)
    clock.seconds = 2000.0
    made.abandoned = True
    with pytest.raises(TimeSliceEndedError):
        made()


def test_a_spent_budget_stops_a_loop() -> None:
    made, _, worked = make_budget(budget_milliseconds=10)
    counted = []

    def count(number: int) -> None:
        counted.append(number)
        worked.seconds += 0.003

    with pytest.raises(BudgetSpentError):
        list(map(count, in_time(range(1000), made)))
    assert counted == [0, 1, 2, 3]


def test_a_budget_of_150_ms_is_spent_after_150_ms() -> None:
    clock = Clock(0.0)
    made = WorkBudget(None, 150, monotonic_seconds=clock, cpu_seconds=clock)
    for clock.seconds in (0.0, 0.006, 0.149):
        assert made() is False
    clock.seconds = 0.1511
    with pytest.raises(BudgetSpentError, match="150 ms"):
        made()


def test_the_cpu_time_is_read_only_when_a_limit_could_be_reached() -> None:
    clock = Clock(0.0)
    readings: list[float] = []

    def waiting_seconds() -> float:
        readings.append(clock())
        return 0.0

    made = WorkBudget(None, 150, monotonic_seconds=clock, cpu_seconds=waiting_seconds, slice_seconds=0.01)
    for step in range(31):
        clock.seconds = step / 1000
        assert made() is False

    assert min(readings) >= 0.005
    assert len(set(readings)) <= 6
