"""The pending pods of lists and watch events."""

from collections.abc import Collection, Iterable, KeysView, Mapping
from typing import cast

from webhook.cluster.cache.namespace_budget import NamespaceBudget
from webhook.cluster.cache.object_key import Key
from webhook.cluster.pods.nominated_pods import NominatedPods
from webhook.cluster.pods.pending_pods import PendingPod, PendingPods, PodKey

# The memory of the pods, about 20,000 real ones. Beyond it, the namespace with the most loses its latest pods.
BUDGET_BYTES = 64 * 1024 * 1024
# A pod beside its content.
_POD_BYTES = 2048


class PendingTracker:
    """Pending pods by name, in the order of their arrival.

    When a pod is bound, the watch of pending pods deletes it and the watch of bound pods adds it, in any order. So a
    pod that is reported as bound counts only as bound, and a pod that left is kept until the second call of `compact`,
    so that the other watch can report it.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.has_changed = False
        self._budget = NamespaceBudget(budget_bytes)
        self._keys_of: dict[str, dict[Key, None]] = {}
        self._nominations_changed = False
        self._nominated = NominatedPods.of(())
        self._pods: dict[Key, PendingPod] = {}
        self._leaving: dict[Key, PendingPod] = {}
        self._left_before: frozenset[Key] = frozenset()
        # The pods at the last call of `pending`, the stored ones among them that were bound, and those that can have
        # changed since, in the order of the changes.
        self._last: PendingPods | None = None
        self._bound: set[Key] = set()
        self._touched: dict[Key, None] = {}

    def keys(self) -> KeysView[Key]:
        """Return the keys of the pods that have not left."""
        return self._pods.keys()

    def put(self, key: Key, pod: PendingPod | None) -> None:
        """Store `pod`; None: it left."""
        before = self._pods.get(key)
        if before == pod:
            return
        self._mark_changed(before, pod, self._leaving.pop(key, None))
        if pod is not None:
            self._pods[key] = pod
            self._keys_of.setdefault(key.namespace, {})[key] = None
            self._budget.use(key.namespace, _size_bytes(pod) - (_size_bytes(before) if before else 0))
        elif before is not None:
            self._remove(key)
            self._leaving[key] = before
        self._left_before -= {key}
        self._touched[key] = None
        while self._budget.left_bytes < 0:
            latest = next(reversed(self._keys_of[self._budget.largest()]))
            self._mark_changed(self._remove(latest))
            self._touched[latest] = None

    def mark_bound(self, key: Key) -> None:
        """Record that the pod has become bound, or is no longer bound."""
        left = self._leaving.pop(key, None)
        if left or key in self._pods:
            self._mark_changed(left, self._pods.get(key))
            self._touched[key] = None

    def compact(self) -> None:
        """Delete the pods that had left at the last call."""
        for key in self._left_before & self._leaving.keys():
            self._mark_changed(self._leaving.pop(key))
            self._touched[key] = None
        self._left_before = frozenset(self._leaving)

    def pending(self, bound: Collection[Key]) -> PendingPods:
        """Return the pods that are not in `bound`."""
        self.has_changed = False
        stored = {**self._leaving, **self._pods} if self._leaving else self._pods
        # Both kinds of key are the same pair.
        touched = cast("Iterable[PodKey]", self._touched)
        self._last = PendingPods(cast("Mapping[PodKey, PendingPod]", stored), self._last, touched)
        # Thousands of pods can be pending, so only those are looked up that can have changed.
        self._bound = {key for key in self._bound | self._touched.keys() if key in bound and key in stored}
        self._touched.clear()
        for key in self._bound:
            del self._last[PodKey(*key)]
        return self._last

    def nominated(self, pending: Mapping[PodKey, PendingPod]) -> NominatedPods:
        """Return the nominated pods of `pending`; the same table until one changes."""
        if self._nominations_changed:
            self._nominations_changed = False
            self._nominated = NominatedPods.of(pod.nominated for pod in pending.values() if pod.nominated)
        return self._nominated

    def _remove(self, key: Key) -> PendingPod:
        pod = self._pods.pop(key)
        del self._keys_of[key.namespace][key]
        if not self._keys_of[key.namespace]:
            del self._keys_of[key.namespace]
        self._budget.use(key.namespace, -_size_bytes(pod))
        return pod

    def _mark_changed(self, *pods: PendingPod | None) -> None:
        self.has_changed = True
        for pod in pods:
            if pod is not None and pod.nominated:
                self._nominations_changed = True


def _size_bytes(pod: PendingPod) -> int:
    return len(pod.content) + _POD_BYTES
