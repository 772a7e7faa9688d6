"""How much work one admission may cost, asked for between the steps of that work."""

from collections.abc import Callable

from webhook.kube.deadline import BudgetSpentError


class TurnEndedError(Exception):
    """Ends work that has to go on elsewhere, or that no client waits for any more. No verdict follows from it."""


class Effort:
    """The bounds of the work for one admission, as the scorer's `expired()`.

    - It expires at `deadline_seconds` of the monotonic clock: then there is no time for the scorer.
    - The scorer may work for `budget_milliseconds`, from the first time that it asks. `worked_seconds` is the clock of
      the thread's processor time, so waiting for others does not count; it is read only once as much time has passed,
      since reading it is slow.
    - After `turn_seconds` of that work, if there is such a bound, or once it is `abandoned`, all of the work ends.

    `is_over` and `is_spent` tell afterwards whether the deadline came or the budget was spent. An instance is for one
    thread, but any may set `abandoned`.
    """

    abandoned = False
    is_over = False
    is_spent = False
    _began: tuple[float, float] | None = None
    _quiet_until_seconds = float("-inf")

    def __init__(
        self,
        deadline_seconds: float | None,
        budget_milliseconds: int,
        *,
        monotonic_seconds: Callable[[], float],
        worked_seconds: Callable[[], float],
        turn_seconds: float | None = None,
    ) -> None:
        self._deadline_seconds = deadline_seconds
        self._budget_milliseconds = budget_milliseconds
        self._monotonic_seconds = monotonic_seconds
        self._worked_seconds = worked_seconds
        self._turn_seconds = turn_seconds

    def __call__(self) -> bool:
        """Return whether the deadline has come.

        Raises:
            BudgetSpentError: the scorer has worked for as long as it may.
            TurnEndedError: the client has left, or the turn has ended.
        """
        if self.abandoned:
            raise TurnEndedError
        now_seconds = self._monotonic_seconds()
        # Asked thirty times for a cold pod, so the common answer comes first.
        return now_seconds >= self._quiet_until_seconds and self._has_come(now_seconds)

    def _has_come(self, now_seconds: float) -> bool:
        if self._deadline_seconds is not None and now_seconds >= self._deadline_seconds:
            self.is_over = True
            return True
        turn_seconds = self._turn_seconds
        if self._began is None:
            self._began = now_seconds, self._worked_seconds()
            self._quiet_until_seconds = self._first_end(now_seconds)
            return False
        passed_seconds = now_seconds - self._began[0]
        if passed_seconds * 1000 < self._budget_milliseconds and (
            turn_seconds is None or passed_seconds < turn_seconds
        ):
            return False
        worked_seconds = self._worked_seconds() - self._began[1]
        if worked_seconds * 1000 >= self._budget_milliseconds:
            self.is_spent = True
            raise BudgetSpentError(self._budget_milliseconds)
        if turn_seconds is not None and worked_seconds >= turn_seconds:
            raise TurnEndedError
        return False

    def _first_end(self, now_seconds: float) -> float:
        """Return a time before which none of the bounds can be reached."""
        ends = [now_seconds + self._budget_milliseconds / 1000]
        if self._turn_seconds is not None:
            ends.append(now_seconds + self._turn_seconds)
        if self._deadline_seconds is not None:
            ends.append(self._deadline_seconds)
        return min(ends)
