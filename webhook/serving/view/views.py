"""Views of a cluster, the reason not to predict from a view, and a throttle for new snapshots."""

import math
import time
from collections.abc import Callable

from webhook.admission.cluster_view import ClusterView
from webhook.cluster.snapshot import Snapshot
from webhook.watch.live import LiveCluster

_SHARED_SECONDS = 0.02
# If the first lists take longer, such as without the right to list, the replica serves without a view.
_LONGEST_START_SECONDS = 30.0
_LABELS_UNKNOWN = (
    "the namespaces of the cluster are not known, and PlacementPolicies select them by labels: the service account "
    "needs the right to list and watch namespaces"
)


class FixedView:
    """A view with one fixed snapshot. Its age counts from the creation of the view."""

    is_live = False
    has_namespaces = True

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken_seconds = time.monotonic()

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        return self._snapshot

    def age_seconds(self) -> float:
        """Return the seconds since the snapshot was taken."""
        return time.monotonic() - self._taken_seconds


View = FixedView | LiveCluster
"""A view of a cluster, from a file or live; one that is live can be stale."""


def stale_reason(view: View, max_age_seconds: float) -> str:
    """Return the reason why `view` is too old for predictions, or an empty string if it is not."""
    age_seconds = view.age_seconds()
    if not view.is_live or age_seconds <= max_age_seconds:
        return ""
    if math.isinf(age_seconds):
        return "the view of the cluster is not there yet"
    return f"the view of the cluster is too old: {age_seconds:.0f} s, at most {max_age_seconds:g} s are allowed"


class StartOfView:
    """Keeps the server unready until the first lists of a live view are complete, for at most half a minute.

    Before that, a pod would not get the defaults of its namespace. If `selects_by_labels()` is true, policies are
    chosen by the labels of namespaces. Then the replica waits for the namespaces without a time limit, because it would
    decide by a wrong policy. A view that becomes stale later does not make a replica unready, because all replicas read
    the same API server, and patches need no current view.
    """

    def __init__(
        self,
        view: View | None,
        monotonic_seconds: Callable[[], float],
        selects_by_labels: Callable[[], bool] = lambda: False,
    ) -> None:
        self._view = view
        self._selects_by_labels = selects_by_labels
        self._waits_for = view if view is not None and view.is_live else None
        self._monotonic_seconds = monotonic_seconds
        self._end_seconds = monotonic_seconds() + _LONGEST_START_SECONDS

    def unready_reason(self) -> str:
        """Return the reason not to be ready. It is empty once the view is complete, or takes too long to load."""
        view = self._waits_for
        if view is None:
            return ""
        if math.isinf(view.age_seconds()) and self._monotonic_seconds() < self._end_seconds:
            return "the view of the cluster is not there yet"
        if self._lacks_labels():
            return _LABELS_UNKNOWN
        self._waits_for = None
        return ""

    def note(self) -> str:
        """Return a text if a ready replica lacks the labels of namespaces that policies now need, or ""."""
        return _LABELS_UNKNOWN if self._waits_for is None and self._lacks_labels() else ""

    def _lacks_labels(self) -> bool:
        return self._view is not None and not self._view.has_namespaces and self._selects_by_labels()


class SnapshotThrottle:
    """Shares one view of the cluster between admissions that follow each other within `_SHARED_SECONDS`.

    A busy cluster sends hundreds of events a second. Without the throttle, each admission would get a new snapshot, and
    no cached decision would be valid for the next pod. The view is at most `_SHARED_SECONDS` late.
    """

    def __init__(self, make_view: Callable[[], ClusterView], monotonic_seconds: Callable[[], float]) -> None:
        self._make_view = make_view
        self._monotonic_seconds = monotonic_seconds
        self._view: ClusterView | None = None
        self._until_seconds = 0.0

    def __call__(self) -> ClusterView:
        """Return the view of the cluster, at most `_SHARED_SECONDS` old."""
        now_seconds = self._monotonic_seconds()
        if self._view is None or now_seconds >= self._until_seconds:
            self._view = self._make_view()
            self._until_seconds = now_seconds + _SHARED_SECONDS
        return self._view

    def forget(self) -> None:
        """Let the next admission get a new view."""
        self._view = None
