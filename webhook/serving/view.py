"""Views of a cluster, and the reason not to predict from one."""

import math
import time
from typing import Protocol

from webhook.cluster.snapshot import Snapshot


class View(Protocol):
    """A view of a cluster: that of a file, or a live one."""

    @property
    def is_live(self) -> bool:
        """Return whether it follows a cluster, so that it can be late."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is known now."""
        ...

    def age_seconds(self) -> float:
        """Return the seconds since it was last known to be current; infinite before the first time."""
        ...


class FixedView:
    """A snapshot that stays, taken when the view is made."""

    is_live = False

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken_seconds = time.monotonic()

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        return self._snapshot

    def age_seconds(self) -> float:
        """Return the seconds since it was taken."""
        return time.monotonic() - self._taken_seconds


def stale_reason(view: View, longest_seconds: float) -> str:
    """Return why `view` is too old to predict from; empty where it is not."""
    age_seconds = view.age_seconds()
    if not view.is_live or age_seconds <= longest_seconds:
        return ""
    if math.isinf(age_seconds):
        return "the view of the cluster is not there yet"
    return f"the view of the cluster is too old: {age_seconds:.0f} s, at most {longest_seconds:g} s are allowed"
