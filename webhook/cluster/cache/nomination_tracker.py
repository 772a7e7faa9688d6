"""The nominated pods of lists and watch events."""

from collections.abc import Collection, KeysView

from webhook.cluster.cache.object_key import Key
from webhook.cluster.nominated_pods import NominatedPod, NominatedPods


class NominationTracker:
    """Nominated pods by name.

    When a nominated pod is bound, the watch of nominated pods deletes it and the watch of bound pods adds it, in any
    order. So a pod that is reported as bound counts only as bound, and a pod that left is kept until the second call
    of `compact`, so that the other watch can report it.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self._pods: dict[Key, NominatedPod] = {}
        self._leaving: dict[Key, NominatedPod] = {}
        self._left_before: frozenset[Key] = frozenset()

    def keys(self) -> KeysView[Key]:
        """Return the keys of the pods that have not left."""
        return self._pods.keys()

    def put(self, key: Key, pod: NominatedPod | None) -> None:
        """Store `pod`; None: it left."""
        before = self._pods.get(key)
        if before == pod:
            return
        self.has_changed = True
        self._leaving.pop(key, None)
        if pod is not None:
            self._pods[key] = pod
        elif before is not None:
            del self._pods[key]
            self._leaving[key] = before
        self._left_before -= {key}

    def mark_bound(self, key: Key) -> None:
        """Record that the pod has become bound, or is no longer bound."""
        if self._leaving.pop(key, None) or key in self._pods:
            self.has_changed = True

    def compact(self) -> None:
        """Delete the pods that had left at the last call."""
        for key in self._left_before & self._leaving.keys():
            del self._leaving[key]
            self.has_changed = True
        self._left_before = frozenset(self._leaving)

    def excluding(self, bound: Collection[Key]) -> NominatedPods:
        """Return the nominated pods that are not in `bound`."""
        self.has_changed = False
        stored = {**self._leaving, **self._pods}
        return NominatedPods.of(pod for key, pod in stored.items() if key not in bound)
