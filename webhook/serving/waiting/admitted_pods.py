"""The pods that are known from their admission alone: which of them a pod of the cluster is, and when to give up.

At admission a pod has no UID, and often no name because the API server generates it later. The volume of its service
account token has a random name, which identifies it. Without that, pods of one controller are matched in their order.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from webhook.kube.pod.pod_identity import PodIdentity

# The memory of the entries. A pod is seen within milliseconds, so there are few of them unless none is ever created.
BUDGET_BYTES = 24 * 1024 * 1024
# A second's pods of a fast client. More of a namespace are seen late, never created, or refused by a quota: a namespace
# must not take the room of others with pods that do not exist.
MOST_OF_A_NAMESPACE = 250


class _Admitted(NamedTuple):
    namespace: str
    key: Hashable
    until_seconds: float
    size_bytes: int


class AdmittedPods:
    """Numbers of pods by identity. An instance is for one thread."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._used_bytes = 0
        self._admitted: OrderedDict[int, _Admitted] = OrderedDict()
        self._numbers: dict[Hashable, deque[int]] = {}
        self._pods_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._admitted)

    def has_place(self, namespace: str) -> bool:
        """Return whether another pod of `namespace` may be added."""
        return self._pods_of.get(namespace, 0) < MOST_OF_A_NAMESPACE

    def add(self, number: int, identity: PodIdentity, until_seconds: float, size_bytes: int) -> None:
        """Add the pod `number`. It takes `size_bytes`, and is given up at `until_seconds`, which never decreases."""
        key = next(identity_keys(identity))
        self._admitted[number] = _Admitted(identity.namespace, key, until_seconds, size_bytes)
        self._pods_of[identity.namespace] = self._pods_of.get(identity.namespace, 0) + 1
        self._numbers.setdefault(key, deque()).append(number)
        self._used_bytes += size_bytes

    def take(self, identity: PodIdentity) -> int | None:
        """Remove and return the number of the pod with `identity`, of several the first; None if there is none."""
        for key in identity_keys(identity):
            if numbers := self._numbers.get(key):
                self.discard(number := numbers[0])
                return number
        return None

    def take_same(self, identity: PodIdentity) -> int | None:
        """Remove and return the pod of which `identity` proves that it is the same; None if there is none."""
        return self.take(identity) if identity.name or identity.token_volume else None

    def find_same(self, identity: PodIdentity) -> int | None:
        """Return the number of the pod that `identity` proves to be the same; other threads may call this."""
        key = next(identity_keys(identity))
        if not identity.name and not identity.token_volume:
            return None
        try:
            return self._numbers[key][0]
        except (KeyError, IndexError):  # none, or removed meanwhile
            return None

    def take_given_up(self, now_seconds: float) -> Iterator[int]:
        """Remove and yield the pods whose time has passed, and the oldest ones beyond the memory budget."""
        while self._admitted:
            number, oldest = next(iter(self._admitted.items()))
            if oldest.until_seconds > now_seconds and self._used_bytes <= self._budget_bytes:
                return
            self.discard(number)
            yield number

    def discard(self, number: int) -> None:
        """Remove the pod `number` if it is there."""
        known = self._admitted.pop(number, None)
        if known is None:
            return
        self._used_bytes -= known.size_bytes
        self._pods_of[known.namespace] -= 1
        if not self._pods_of[known.namespace]:
            del self._pods_of[known.namespace]
        numbers = self._numbers[known.key]
        numbers.remove(number)
        if not numbers:
            del self._numbers[known.key]


def identity_keys(identity: PodIdentity) -> Iterator[Hashable]:
    """Yield what an admitted pod can be found by, the most certain first. Only a volume proves that it is the pod."""
    if identity.token_volume:
        yield identity.namespace, "volume", identity.token_volume
    if identity.name:
        yield identity.namespace, "name", identity.name
    yield identity.namespace, identity.generate_name, identity.controller
