"""The rows of a snapshot that were changed in place."""

from typing import NamedTuple
from weakref import ref

from webhook.cluster.node_info import RunningPod

# Some hundred bytes each.
MOST_CHANGES = 4096


class ClassifiedPod(NamedTuple):
    """A pod with the number of its class in the table of running pods."""

    number: int
    pod: RunningPod


class RowChange(NamedTuple):
    """The pods that were added to a node and removed from it."""

    row: int
    added: tuple[ClassifiedPod, ...]
    removed: tuple[ClassifiedPod, ...]


class RowLog:
    """The changes of the rows of one snapshot since it was made, in order.

    The log identifies the state of all else in the snapshot: a result that was computed at one length of a log is
    brought up to date by the changes since. The oldest changes are dropped; what needs them is computed anew.
    """

    __slots__ = ("_dropped", "_snapshot", "changes")

    def __init__(self, snapshot: object) -> None:
        self._dropped = 0
        self.changes: list[RowChange] = []
        self.move_to(snapshot)

    @property
    def position(self) -> int:
        """Return the number of changes so far."""
        return self._dropped + len(self.changes)

    def since(self, position: int) -> list[RowChange] | None:
        """Return the changes after the first `position`; None if some have been dropped."""
        return self.changes[position - self._dropped :] if position >= self._dropped else None

    def add(self, change: RowChange) -> None:
        """Add a change."""
        self.changes.append(change)
        if len(self.changes) > MOST_CHANGES:
            del self.changes[: MOST_CHANGES // 2]
            self._dropped += MOST_CHANGES // 2

    def move_to(self, snapshot: object) -> None:
        """Make this the log of `snapshot`."""
        self._snapshot = ref(snapshot)

    def is_of(self, snapshot: object) -> bool:
        """Return whether this is the log of `snapshot`, and not of one that was derived from it."""
        return self._snapshot() is snapshot

    def clear(self) -> None:
        """Remove the changes of a snapshot that nothing was computed from."""
        self.changes.clear()
