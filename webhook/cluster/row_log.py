"""The rows of a snapshot that were changed in place."""

from typing import NamedTuple
from weakref import ref

from webhook.cluster.node_info import RunningPod


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
    brought up to date by the changes since.
    """

    __slots__ = ("_snapshot", "changes")

    def __init__(self, snapshot: object) -> None:
        self.changes: list[RowChange] = []
        self.move_to(snapshot)

    def move_to(self, snapshot: object) -> None:
        """Make this the log of `snapshot`."""
        self._snapshot = ref(snapshot)

    def is_of(self, snapshot: object) -> bool:
        """Return whether this is the log of `snapshot`, and not of one that was derived from it."""
        return self._snapshot() is snapshot

    def clear(self) -> None:
        """Remove the changes of a snapshot that nothing was computed from."""
        self.changes.clear()
