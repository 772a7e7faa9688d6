"""Views of a cluster, and the reason not to predict from one."""

import math
import time
from collections.abc import Callable
from typing import Protocol

from webhook.cluster.snapshot import Snapshot

# If the first lists take longer, such as without the right to list, the replica serves without a view.
_LONGEST_START_SECONDS = 30.0


class View(Protocol):
    """A view of a cluster, from a file or live."""

    @property
    def is_live(self) -> bool:
        """Return whether the view follows a cluster, so that it can be stale."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the current snapshot."""
        ...

    def age_seconds(self) -> float:
        """Return the seconds since the view was last known to be current; infinite before the first sync."""
        ...


class FixedView:
    """A view with one fixed snapshot, taken when the view is created."""

    is_live = False

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken_seconds = time.monotonic()

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        return self._snapshot

    def age_seconds(self) -> float:
        """Return the seconds since the snapshot was taken."""
        return time.monotonic() - self._taken_seconds


def stale_reason(view: View, max_age_seconds: float) -> str:
    """Return the reason why `view` is too old for predictions; empty if it is not."""
    age_seconds = view.age_seconds()
    if not view.is_live or age_seconds <= max_age_seconds:
        return ""
    if math.isinf(age_seconds):
        return "the view of the cluster is not there yet"
    return f"the view of the cluster is too old: {age_seconds:.0f} s, at most {max_age_seconds:g} s are allowed"


class StartOfView:
    """Holds readiness back until the first lists of a live view are complete, for half a minute at most.

    Before that, a pod would get no defaults of its namespace. A view that becomes stale later keeps no replica from
    serving: all replicas read the same API server, and patches need no current view.
    """

    def __init__(self, view: View | None, monotonic_seconds: Callable[[], float]) -> None:
        self._waits_for = view if view is not None and view.is_live else None
        self._monotonic_seconds = monotonic_seconds
        self._end_seconds = monotonic_seconds() + _LONGEST_START_SECONDS

    def unready_reason(self) -> str:
        """Return the reason not to be ready; empty once the view is there, or takes too long."""
        view = self._waits_for
        if view is not None and math.isinf(view.age_seconds()) and self._monotonic_seconds() < self._end_seconds:
            return "the view of the cluster is not there yet"
        self._waits_for = None
        return ""
