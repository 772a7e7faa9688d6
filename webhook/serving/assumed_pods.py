"""The pods that kube-scheduler has just placed, as far as the view of the cluster does not show them yet.

kube-scheduler places the next pod before the last one is bound. Without this, the next pod would find the same nodes.
"""

from collections.abc import Callable
from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.reservations import Reservation, Reservations

# kube-scheduler binds a pod within milliseconds. A pod that it has placed elsewhere is forgotten after this time.
_ASSUMED_SECONDS = 10.0
# Callers are not authenticated, so the number of pods that they can name is limited.
_MOST_PODS = 1000


class PodName(NamedTuple):
    """The namespace and the name of a pod."""

    namespace: str
    name: str


class AssumedPods:
    """The assumed pods, each on the node that was best for it. An instance is for one thread."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._reservations: Reservations[PodName] | None = None
        # In the order of their time.
        self._since: dict[PodName, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def on(self, snapshot: Snapshot, pod: PodName) -> Snapshot:
        """Return `snapshot` with the assumed pods, without `pod`, which is scheduled again."""
        known = self._reservations
        if known is None:
            return snapshot
        known = known.on(snapshot)
        end_seconds = self._monotonic_seconds() - _ASSUMED_SECONDS
        gone = [key for key, since_seconds in self._since.items() if since_seconds <= end_seconds or key == pod]
        gone += [key for key, each in known.by_key.items() if _is_on_node(each.pod, snapshot)]
        gone += [key for key in self._since if key not in known.by_key]
        for key in gone:
            self._since.pop(key, None)
        known = known.without(gone)
        self._reservations = known if len(known) else None
        return known.all_shown

    def assume(self, pod: RunningPod, snapshot: Snapshot) -> None:
        """Assume `pod` on its node, which is one of `snapshot`."""
        key = PodName(pod.namespace, pod.name)
        known = Reservations[PodName](snapshot, {}) if self._reservations is None else self._reservations.on(snapshot)
        if len(self._since) >= _MOST_PODS:
            oldest = next(iter(self._since))
            del self._since[oldest]
            known = known.without((oldest,))
        self._since.pop(key, None)
        self._since[key] = self._monotonic_seconds()
        self._reservations = known.without((key,)).with_reservation(key, Reservation(pod, 0))


def _is_on_node(pod: RunningPod, snapshot: Snapshot) -> bool:
    info = snapshot.nodes[snapshot.rows[pod.node_name]]
    return any(each.name == pod.name and each.namespace == pod.namespace for each in info.pods)
