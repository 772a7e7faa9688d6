"""The pods that kube-scheduler has just placed and that the view of the cluster does not show yet.

kube-scheduler places the next pod before the last one is bound. Without this module, the next pod would find the same
free room. A pod that is bound and deleted before the next call is in no snapshot that a call gets, so the watch reports
it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods

# kube-scheduler binds a pod within milliseconds. A pod that it has placed elsewhere is forgotten after this time.
_ASSUMED_SECONDS = 10.0
# A caller may be no kube-scheduler, so the number and the memory of the pods that it can name are limited.
_MOST_PODS = 300
_MOST_BYTES = 4 * 1024 * 1024


class RecentlyBound:
    """The latest pods that the watch has reported as bound since the last call of `taken`. Thread-safe."""

    def __init__(self) -> None:
        self._noted: deque[tuple[PodKey, int]] = deque(maxlen=_MOST_PODS)

    def note(self, pod: PodIdentity, generation: int) -> None:
        """Record that `pod` is bound in snapshots of `generation` and later ones."""
        self._noted.append((PodKey(pod.namespace, pod.name), generation))

    def taken(self) -> Iterator[tuple[PodKey, int]]:
        """Yield the pods, and the generation of the first snapshot of each."""
        while self._noted:
            yield self._noted.popleft()


class _Entry(NamedTuple):
    """An assumed pod. `bound_in` is the generation of the first snapshot in which it is bound or already deleted."""

    since_seconds: float
    size_bytes: int
    bound_in: float = inf


class ExtenderPods:
    """The pods that kube-scheduler has placed, each assumed on its best node. Not thread-safe."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._assumed: AssumedPods[PodKey] = AssumedPods(Snapshot.of(()))
        # In the order of their time.
        self._entries: dict[PodKey, _Entry] = {}
        self._used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def note_bound(self, bound: Iterable[tuple[PodKey, int]]) -> None:
        """Mark (pod, generation) to be forgotten with the first snapshot that shows the pod as bound."""
        for key, generation in bound:
            if entry := self._entries.get(key):
                self._entries[key] = entry._replace(bound_in=generation)

    def on(self, snapshot: Snapshot, pod: PodKey) -> Snapshot:
        """Return `snapshot` with the assumed pods, except `pod`, which is being scheduled again."""
        assumed = self._assumed
        end_seconds = self._monotonic_seconds() - _ASSUMED_SECONDS
        gone = [key for key, entry in self._entries.items() if entry.since_seconds <= end_seconds or key == pod]
        gone += [key for key, entry in self._entries.items() if entry.bound_in <= snapshot.generation]
        gone += [key for key, each in assumed.by_key.items() if _is_on_node(each.pod, snapshot)]
        for key in (*gone, *assumed.follow(snapshot, gone)):
            self._forget(key)
        return assumed.all_shown if assumed else snapshot

    def assume(self, pod: RunningPod, size_bytes: int, snapshot: Snapshot) -> None:
        """Assume `pod` on its node, which must be in `snapshot`. The pod takes up to `size_bytes` of memory."""
        if size_bytes > _MOST_BYTES:
            return
        key = PodKey(pod.namespace, pod.name)
        gone = [key]
        self._forget(key)
        while len(self._entries) >= _MOST_PODS or self._used_bytes + size_bytes > _MOST_BYTES:
            oldest = next(iter(self._entries))
            self._forget(oldest)
            gone.append(oldest)
        for lost in self._assumed.follow(snapshot, gone):
            self._forget(lost)
        self._entries[key] = _Entry(self._monotonic_seconds(), size_bytes)
        self._used_bytes += size_bytes
        self._assumed.assume(key, AssumedPod(pod, 0))

    def _forget(self, key: PodKey) -> None:
        if entry := self._entries.pop(key, None):
            self._used_bytes -= entry.size_bytes


def _is_on_node(pod: RunningPod, snapshot: Snapshot) -> bool:
    row = snapshot.rows.get(pod.node_name)
    pods = () if row is None else snapshot.nodes[row].pods
    return any(each.name == pod.name and each.namespace == pod.namespace for each in pods)
