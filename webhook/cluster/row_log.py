"""The rows of a snapshot that were changed in place."""

from typing import NamedTuple

from webhook.cluster.node_info import RunningPod

# Some hundred bytes each.
MOST_CHANGES = 4096


class PodChange(NamedTuple):
    """A pod that was added to the node in `row` (`sign` is 1) or removed from it (`sign` is -1).

    `number` is the class of the pod in the table of running pods.
    """

    row: int
    sign: int
    number: int
    pod: RunningPod


class RowLog:
    """The changes to the rows of one snapshot since it was made, in order.

    While the log is the same object, only rows have changed in the snapshot. So a result that was computed at one
    position of the log can be updated with the later changes. The oldest changes are dropped; a result that needs them
    must be recomputed.
    """

    __slots__ = ("changes", "position")

    def __init__(self) -> None:
        self.changes: list[PodChange] = []
        self.position = 0
        """The number of changes so far."""

    def since(self, position: int) -> list[PodChange] | None:
        """Return the changes after the first `position`, or None if some have been dropped."""
        new = self.position - position
        return self.changes[len(self.changes) - new :] if new <= len(self.changes) else None

    def add(self, change: PodChange) -> None:
        """Add a change."""
        self.changes.append(change)
        self.position += 1
        if len(self.changes) > MOST_CHANGES:
            del self.changes[: MOST_CHANGES // 2]

    def clear(self) -> None:
        """Remove the changes of a snapshot from which nothing was computed."""
        self.changes.clear()
