"""The pods that kube-scheduler has just placed, as far as the view of the cluster does not show them yet.

kube-scheduler places the next pod before the last one is bound. Without this, the next pod would find the same nodes.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.reservations import Reservation, Reservations

# kube-scheduler binds a pod within milliseconds. A pod that it has placed elsewhere is forgotten after this time.
_ASSUMED_SECONDS = 10.0
# Callers are not authenticated, so the number and the memory of the pods that they can name are limited.
_MOST_PODS = 300
_MOST_BYTES = 16 * 1024 * 1024


class PodName(NamedTuple):
    """The namespace and the name of a pod."""

    namespace: str
    name: str


class _Entry(NamedTuple):
    since_seconds: float
    size_bytes: int


class AssumedPods:
    """The assumed pods, each on the node that was best for it. An instance is for one thread."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._reservations: Reservations[PodName] | None = None
        # In the order of their time.
        self._entries: dict[PodName, _Entry] = {}
        self._used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def on(self, snapshot: Snapshot, pod: PodName) -> Snapshot:
        """Return `snapshot` with the assumed pods, without `pod`, which is scheduled again."""
        known = self._reservations
        if known is None:
            return snapshot
        known = known.on(snapshot)
        end_seconds = self._monotonic_seconds() - _ASSUMED_SECONDS
        gone = [key for key, entry in self._entries.items() if entry.since_seconds <= end_seconds or key == pod]
        gone += [key for key, each in known.by_key.items() if _is_on_node(each.pod, snapshot)]
        gone += [key for key in self._entries if key not in known.by_key]
        self._forget(gone)
        known = known.without(gone)
        self._reservations = known if len(known) else None
        return known.all_shown

    def assume(self, pod: RunningPod, size_bytes: int, snapshot: Snapshot) -> None:
        """Assume `pod`, which takes up to `size_bytes` of memory, on its node, which is one of `snapshot`."""
        if size_bytes > _MOST_BYTES:
            return
        key = PodName(pod.namespace, pod.name)
        gone = [key]
        self._forget(gone)
        left, used_bytes = len(self._entries), self._used_bytes + size_bytes
        for oldest, entry in self._entries.items():
            if left < _MOST_PODS and used_bytes <= _MOST_BYTES:
                break
            gone.append(oldest)
            left, used_bytes = left - 1, used_bytes - entry.size_bytes
        self._forget(gone)
        self._entries[key] = _Entry(self._monotonic_seconds(), size_bytes)
        self._used_bytes += size_bytes
        known = Reservations[PodName](snapshot, {}) if self._reservations is None else self._reservations.on(snapshot)
        self._reservations = known.without(gone).with_reservation(key, Reservation(pod, 0))

    def _forget(self, keys: Iterable[PodName]) -> None:
        for key in keys:
            if entry := self._entries.pop(key, None):
                self._used_bytes -= entry.size_bytes


def _is_on_node(pod: RunningPod, snapshot: Snapshot) -> bool:
    info = snapshot.nodes[snapshot.rows[pod.node_name]]
    return any(each.name == pod.name and each.namespace == pod.namespace for each in info.pods)
