"""The view of the cluster with the room that pods which wait have."""

from collections.abc import Callable
from dataclasses import replace

from webhook.admission.pipeline import ClusterView
from webhook.serving.waiting.waiting_pods import WaitingPods


class ReservedView:
    """Adds the assumed to the view that `cluster` returns. The same view is returned until something changes."""

    def __init__(self, cluster: Callable[[], ClusterView], waiting: WaitingPods) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._view: ClusterView | None = None

    def __call__(self, address: str = "") -> ClusterView:
        """Return the current view, as it is for a review of the client at `address`."""
        cluster = self._cluster()
        if cluster.stale_reason or not cluster.snapshot.nodes:
            return cluster
        assumed, known = self._waiting.on(cluster.snapshot, address), self._view
        if (
            known is None
            or known.assumed is not assumed
            or known.snapshot is not assumed.base
            or known.scorer is not cluster.scorer
        ):
            # The pods that wait can have followed a later snapshot than `cluster` has.
            reserves = self._waiting.reserves
            self._view = known = replace(cluster, snapshot=assumed.base, assumed=assumed, reserves=reserves)
        return known
