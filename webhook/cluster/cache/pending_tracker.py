"""Track the pending pods from lists and watch events."""

from collections.abc import Iterable, KeysView, Mapping
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
    """Pending pods by name, in the order of their arrival."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.has_changed = False
        self._budget = NamespaceBudget(budget_bytes)
        self._keys_of: dict[str, dict[Key, None]] = {}
        self._nominations_changed = False
        self._nominated = NominatedPods.of(())
        self._pods: dict[Key, PendingPod] = {}
        # The pods at the last call of `pending`, and those that can have changed since, in the order of the changes.
        self._last: PendingPods | None = None
        self._touched: dict[Key, None] = {}

    def keys(self) -> KeysView[Key]:
        """Return the keys of the pods."""
        return self._pods.keys()

    def put(self, key: Key, pod: PendingPod | None) -> None:
        """Store `pod`, or remove the pod `key` if `pod` is None, because it is deleted or bound."""
        before = self._pods.get(key)
        if before == pod:
            return
        self._mark_changed(before, pod)
        if pod is not None:
            self._pods[key] = pod
            self._keys_of.setdefault(key.namespace, {})[key] = None
            self._budget.use(key.namespace, _size_bytes(pod) - (_size_bytes(before) if before else 0))
        elif before is not None:
            self._remove(key)
        self._touched[key] = None
        while self._budget.left_bytes < 0:
            latest = next(reversed(self._keys_of[self._budget.largest()]))
            self._mark_changed(self._remove(latest))
            self._touched[latest] = None

    def pending(self) -> PendingPods:
        """Return the pods."""
        self.has_changed = False
        # Both kinds of key are the same pair.
        pods, touched = cast("Mapping[PodKey, PendingPod]", self._pods), cast("Iterable[PodKey]", self._touched)
        self._last = PendingPods(pods, self._last, touched)
        self._touched.clear()
        return self._last

    def nominated(self, pending: Mapping[PodKey, PendingPod]) -> NominatedPods:
        """Return the nominated pods in `pending`. The same table is returned until one changes."""
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
