"""The limits of the search for devices."""

from dataclasses import dataclass

from webhook.kube.deadline import DeadlineNearError, Expired, never

# The most steps for one pod; most nodes need one for each requested device.
MOST_STEPS = 100_000
_STEPS_IN_NO_TIME = 100
# The devices that are inspected between two deadline checks, and the most such batches for one pod.
_DEVICES_IN_NO_TIME = 1_000
_MOST_INSPECTIONS = 5_000


class SearchAbortedError(Exception):
    """The result is not known, because the search takes too long or kube-scheduler returns an error."""


@dataclass(slots=True)
class StepBudget:
    """The remaining steps and inspections, and the deadline. All nodes share one budget."""

    steps: int = MOST_STEPS
    expired: Expired = never
    inspections: int = _MOST_INSPECTIONS

    def spend(self) -> None:
        """Use one step.

        Raises:
            SearchAbortedError: no step is left.
            DeadlineNearError: `expired()` returned true.
        """
        self.steps -= 1
        if self.steps % _STEPS_IN_NO_TIME == 0 and self.expired():
            raise DeadlineNearError
        if self.steps < 0:
            raise SearchAbortedError

    def inspect(self, position: int) -> None:
        """Count the inspection of the device at this index. Only full batches are counted.

        Raises:
            SearchAbortedError: too many devices have been inspected.
            DeadlineNearError: `expired()` returned true.
        """
        if position % _DEVICES_IN_NO_TIME < _DEVICES_IN_NO_TIME - 1:
            return
        self.inspections -= 1
        if self.expired():
            raise DeadlineNearError
        if self.inspections < 0:
            raise SearchAbortedError
