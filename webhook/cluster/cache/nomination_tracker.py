"""The nominated pods that lists and events told of."""

from collections.abc import Collection, KeysView

from webhook.cluster.cache.object_key import Key
from webhook.cluster.nominated_pods import NominatedPod, NominatedPods


class NominationTracker:
    """Nominated pods by name.

    Once such a pod is bound, the watch of the nominated ones takes it out and that of the bound ones puts it in, in any
    order. So a pod that is told to be bound counts as that alone; and one that left is held until `compact` has been
    called twice, for the other watch to tell of it in the meantime.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self._pods: dict[Key, NominatedPod] = {}
        self._leaving: dict[Key, NominatedPod] = {}
        self._left_before: frozenset[Key] = frozenset()

    def keys(self) -> KeysView[Key]:
        """The pods that have not left."""
        return self._pods.keys()

    def put(self, key: Key, pod: NominatedPod | None) -> None:
        """Hold `pod`; None: it left."""
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
        """Take note that the pod is told to be bound, or to be so no more."""
        if self._leaving.pop(key, None) or key in self._pods:
            self.has_changed = True

    def compact(self) -> None:
        """Hold the pods no more that had left when this was last called."""
        for key in self._left_before & self._leaving.keys():
            del self._leaving[key]
            self.has_changed = True
        self._left_before = frozenset(self._leaving)

    def excluding(self, bound: Collection[Key]) -> NominatedPods:
        """Those of them that are not among the `bound` ones."""
        self.has_changed = False
        held = {**self._leaving, **self._pods}
        return NominatedPods.of(pod for key, pod in held.items() if key not in bound)
