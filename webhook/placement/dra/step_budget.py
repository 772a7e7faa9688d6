"""How long kube-scheduler's search for devices is followed."""

from dataclasses import dataclass

from webhook.kube.deadline import DeadlineNearError, Expired, never

# So many steps are made for one pod: most nodes need as many as the pod asks for devices.
MOST_STEPS = 100_000
_STEPS_IN_NO_TIME = 100
# So many devices are looked at between two questions about the time, and so often that many for one pod.
_DEVICES_IN_NO_TIME = 1_000
_MOST_LOOKS = 5_000


class SearchAbortedError(Exception):
    """What kube-scheduler does is not known: the search is too long, or kube-scheduler ends it with an error."""


@dataclass(slots=True)
class StepBudget:
    """How many steps are left, and whether there is time; shared by all nodes."""

    steps: int = MOST_STEPS
    expired: Expired = never
    looks: int = _MOST_LOOKS

    def spend(self) -> None:
        """Take one.

        Raises:
            SearchAbortedError: none is left.
            DeadlineNearError: `expired()` holds.
        """
        self.steps -= 1
        if self.steps % _STEPS_IN_NO_TIME == 0 and self.expired():
            raise DeadlineNearError
        if self.steps < 0:
            raise SearchAbortedError

    def look(self, position: int) -> None:
        """Look at the device in this place; now and then that is counted.

        Raises:
            SearchAbortedError: too many devices have been looked at.
            DeadlineNearError: `expired()` holds.
        """
        if position % _DEVICES_IN_NO_TIME < _DEVICES_IN_NO_TIME - 1:
            return
        self.looks -= 1
        if self.expired():
            raise DeadlineNearError
        if self.looks < 0:
            raise SearchAbortedError
