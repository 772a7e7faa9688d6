"""Limits how often admissions see a new snapshot of the cluster."""

from collections.abc import Callable

from webhook.admission.pipeline import ClusterView

_SHARED_SECONDS = 0.02


class SnapshotThrottle:
    """Shares one view of the cluster between admissions that follow each other within `_SHARED_SECONDS`.

    A busy cluster sends hundreds of events a second. Without the throttle each admission would get a snapshot of its
    own, and no cached decision would be valid for the next pod. The view is late by `_SHARED_SECONDS` at most.
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
        """Make the next admission get a view of its own."""
        self._view = None
