"""The pending pods of lists and watch events."""

from collections.abc import Collection, KeysView, Mapping
from typing import cast

from webhook.cluster.cache.object_key import Key
from webhook.cluster.nominated_pods import NominatedPods
from webhook.cluster.pending_pods import PendingPod, PodKey

# Pods beyond this number are not stored: no cluster schedules so many at once, and each takes memory.
MOST_PENDING = 20_000


class PendingTracker:
    """Pending pods by name, in the order of their arrival.

    When a pod is bound, the watch of pending pods deletes it and the watch of bound pods adds it, in any order. So a
    pod that is reported as bound counts only as bound, and a pod that left is kept until the second call of `compact`,
    so that the other watch can report it.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self._nominations_changed = False
        self._nominated = NominatedPods.of(())
        self._pods: dict[Key, PendingPod] = {}
        self._leaving: dict[Key, PendingPod] = {}
        self._left_before: frozenset[Key] = frozenset()
        # The stored pods that are bound at the last call of `pending`, and those that may have become so since.
        self._bound: set[Key] = set()
        self._touched: set[Key] = set()

    def keys(self) -> KeysView[Key]:
        """Return the keys of the pods that have not left."""
        return self._pods.keys()

    def put(self, key: Key, pod: PendingPod | None) -> None:
        """Store `pod`; None: it left."""
        before = self._pods.get(key)
        if before == pod or (before is None and len(self._pods) >= MOST_PENDING):
            return
        self._mark_changed(before, pod, self._leaving.pop(key, None))
        if pod is not None:
            self._pods[key] = pod
        elif before is not None:
            del self._pods[key]
            self._leaving[key] = before
        self._left_before -= {key}
        self._touched.add(key)

    def mark_bound(self, key: Key) -> None:
        """Record that the pod has become bound, or is no longer bound."""
        left = self._leaving.pop(key, None)
        if left or key in self._pods:
            self._mark_changed(left, self._pods.get(key))
            self._touched.add(key)

    def compact(self) -> None:
        """Delete the pods that had left at the last call."""
        for key in self._left_before & self._leaving.keys():
            self._mark_changed(self._leaving.pop(key))
        self._left_before = frozenset(self._leaving)

    def pending(self, bound: Collection[Key]) -> Mapping[PodKey, PendingPod]:
        """Return the pods that are not in `bound`."""
        self.has_changed = False
        stored = {**self._leaving, **self._pods}
        # Thousands of pods can be pending, so only those are looked up that can have changed.
        self._bound = {key for key in self._bound | self._touched if key in bound and key in stored}
        self._touched.clear()
        for key in self._bound:
            del stored[key]
        # Both kinds of key are the same pair.
        return cast("dict[PodKey, PendingPod]", stored)

    def nominated(self, pending: Mapping[PodKey, PendingPod]) -> NominatedPods:
        """Return the nominated pods of `pending`; the same table until one changes."""
        if self._nominations_changed:
            self._nominations_changed = False
            self._nominated = NominatedPods.of(pod.nominated for pod in pending.values() if pod.nominated)
        return self._nominated

    def _mark_changed(self, *pods: PendingPod | None) -> None:
        self.has_changed = True
        if any(pod is not None and pod.nominated for pod in pods):
            self._nominations_changed = True
