"""The limits of the work for one admission, which are checked between its steps."""

import math
from collections.abc import Callable, Sequence

from webhook.kube.deadline import BudgetSpentError

# The time of the clock that counts as CPU time before the first system call.
_UNCOUNTED_SECONDS = 0.005


class TimeSliceEndedError(Exception):
    """Stops work that the worker thread must repeat, or for which no client waits. There is no verdict."""


class CpuLimit:
    """A limit of a thread's CPU time, which costs a system call and is not read at first (`uncounted_seconds`)."""

    def __init__(self, limit_seconds: float, uncounted_seconds: float, cpu_seconds: Callable[[], float]) -> None:
        self._limit_seconds = limit_seconds
        self._uncounted_seconds = uncounted_seconds
        self._cpu_seconds = cpu_seconds
        self._ends_seconds: float | None = None

    def left_seconds(self, elapsed_seconds: float) -> float:
        """Return seconds, after `elapsed_seconds` of wall time, within which the limit is not reached."""
        if self._ends_seconds is None:
            if elapsed_seconds < self._uncounted_seconds:
                return self._uncounted_seconds - elapsed_seconds
            self._ends_seconds = self._cpu_seconds() + self._limit_seconds - self._uncounted_seconds
        return max(0.0, self._ends_seconds - self._cpu_seconds())


def ends_after(
    seconds: float, monotonic_seconds: Callable[[], float], cpu_seconds: Callable[[], float]
) -> Callable[[], bool]:
    """Return a function that returns whether the thread has used `seconds` of CPU time from now on."""
    began_seconds, limit = monotonic_seconds(), CpuLimit(seconds, seconds / 2, cpu_seconds)
    return lambda: limit.left_seconds(monotonic_seconds() - began_seconds) <= 0


class WorkBudget:
    """The limits of the work for one admission, as the scorer's `expired()`.

    - It expires at `deadline_seconds` of the monotonic clock: there is no time left for the scorer.
    - The scorer may work for `budget_milliseconds` from its first check on. `cpu_seconds` is the CPU time of the
      thread, so waiting for other threads does not count, but for the first moments (`CpuLimit`).
    - All work stops after `slice_seconds` of CPU time, if given, or once the budget is `abandoned`.
    - `give_way`, if given, is called at each check. It may wait, which is no CPU time.

    Afterwards, `is_expired` and `is_spent` are true if the deadline passed or the budget was spent. An instance is for
    one thread, but any thread may set `abandoned`.
    """

    abandoned = False
    is_expired = False
    is_spent = False
    _began_seconds: float | None = None
    _limits: Sequence[CpuLimit] = ()
    _next_check_seconds = float("-inf")

    def __init__(
        self,
        deadline_seconds: float | None,
        budget_milliseconds: int,
        *,
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        slice_seconds: float | None = None,
        give_way: Callable[[], None] | None = None,
    ) -> None:
        self._give_way = give_way
        self._deadline_seconds = deadline_seconds
        self._budget_milliseconds = budget_milliseconds
        self._monotonic_seconds = monotonic_seconds
        self._cpu_seconds = cpu_seconds
        self._slice_seconds = slice_seconds

    def __call__(self) -> bool:
        """Return whether the deadline has passed."""
        if self.abandoned:
            raise TimeSliceEndedError
        if self._give_way is not None:
            self._give_way()
        now_seconds = self._monotonic_seconds()
        # A cold pod checks thirty times, so the common answer comes first.
        return now_seconds >= self._next_check_seconds and self._check_limits(now_seconds)

    def _check_limits(self, now_seconds: float) -> bool:
        if self._deadline_seconds is not None and now_seconds >= self._deadline_seconds:
            self.is_expired = True
            return True
        if self._began_seconds is None:
            self._began_seconds = now_seconds
            limit_seconds, slice_seconds = self._budget_milliseconds / 1000, self._slice_seconds
            uncounted_seconds = min(limit_seconds, slice_seconds or limit_seconds, 2 * _UNCOUNTED_SECONDS) / 2
            self._next_check_seconds = min(now_seconds + uncounted_seconds, self._deadline_seconds or math.inf)
            return False
        elapsed_seconds = now_seconds - self._began_seconds
        if not self._limits:
            self._limits = self._made_limits()
        budget, *slices = self._limits
        budget_left_seconds = budget.left_seconds(elapsed_seconds)
        if budget_left_seconds <= 0:
            self.is_spent = True
            raise BudgetSpentError(self._budget_milliseconds)
        ends = [now_seconds + budget_left_seconds]
        for each in slices:
            slice_left_seconds = each.left_seconds(elapsed_seconds)
            if slice_left_seconds <= 0:
                raise TimeSliceEndedError
            ends.append(now_seconds + slice_left_seconds)
        if self._deadline_seconds is not None:
            ends.append(self._deadline_seconds)
        self._next_check_seconds = min(ends)
        return False

    def _made_limits(self) -> list[CpuLimit]:
        """Create the limits of the budget and of the time slice at first use, because most work ends before."""
        limit_seconds, slice_seconds = self._budget_milliseconds / 1000, self._slice_seconds
        found = [CpuLimit(limit_seconds, min(limit_seconds / 2, _UNCOUNTED_SECONDS), self._cpu_seconds)]
        if slice_seconds is not None:
            found.append(CpuLimit(slice_seconds, slice_seconds / 2, self._cpu_seconds))
        return found
