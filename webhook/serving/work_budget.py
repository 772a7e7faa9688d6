"""The work that one admission may cost, checked between the steps of that work."""

from collections.abc import Callable

from webhook.kube.deadline import BudgetSpentError


class TimeSliceEndedError(Exception):
    """Stops work that the worker thread must redo, or that no client waits for. No verdict follows from it."""


class WorkBudget:
    """The limits of the work for one admission, as the scorer's `expired()`.

    - It expires at `deadline_seconds` of the monotonic clock: there is no time left for the scorer.
    - The scorer may work for `budget_milliseconds` from its first check on. `cpu_seconds` is the CPU time of the
      thread, so waiting for other threads does not count. Reading it is slow, so it is read only after as much wall
      time has passed as the thread would need to reach a limit.
    - All work stops after `slice_seconds` of CPU time, if given, or once the budget is `abandoned`.

    Afterwards `is_expired` and `is_spent` state whether the deadline passed or the budget was spent. An instance is for
    one thread; any thread may set `abandoned`.
    """

    abandoned = False
    is_expired = False
    is_spent = False
    _began: tuple[float, float] | None = None
    _next_check_seconds = float("-inf")

    def __init__(
        self,
        deadline_seconds: float | None,
        budget_milliseconds: int,
        *,
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        slice_seconds: float | None = None,
    ) -> None:
        self._deadline_seconds = deadline_seconds
        self._budget_milliseconds = budget_milliseconds
        self._monotonic_seconds = monotonic_seconds
        self._cpu_seconds = cpu_seconds
        self._slice_seconds = slice_seconds

    def __call__(self) -> bool:
        """Return whether the deadline has passed.

        Raises:
            BudgetSpentError: the scorer has worked for as long as it may.
            TimeSliceEndedError: the client has left, or the time slice has ended.
        """
        if self.abandoned:
            raise TimeSliceEndedError
        now_seconds = self._monotonic_seconds()
        # A cold pod checks thirty times, so the common answer comes first.
        return now_seconds >= self._next_check_seconds and self._check_limits(now_seconds)

    def _check_limits(self, now_seconds: float) -> bool:
        if self._deadline_seconds is not None and now_seconds >= self._deadline_seconds:
            self.is_expired = True
            return True
        slice_seconds = self._slice_seconds
        if self._began is None:
            self._began = now_seconds, self._cpu_seconds()
            self._next_check_seconds = self._earliest_limit(now_seconds, 0.0)
            return False
        worked_seconds = self._cpu_seconds() - self._began[1]
        if worked_seconds * 1000 >= self._budget_milliseconds:
            self.is_spent = True
            raise BudgetSpentError(self._budget_milliseconds)
        if slice_seconds is not None and worked_seconds >= slice_seconds:
            raise TimeSliceEndedError
        self._next_check_seconds = self._earliest_limit(now_seconds, worked_seconds)
        return False

    def _earliest_limit(self, now_seconds: float, worked_seconds: float) -> float:
        """Return the time before which no limit can be reached by a thread that has worked for `worked_seconds`."""
        ends = [now_seconds + self._budget_milliseconds / 1000 - worked_seconds]
        if self._slice_seconds is not None:
            ends.append(now_seconds + self._slice_seconds - worked_seconds)
        if self._deadline_seconds is not None:
            ends.append(self._deadline_seconds)
        return min(ends)
