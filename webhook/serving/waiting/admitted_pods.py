"""The pods that are known only from their admission: which of them a pod of the cluster is, and when they expire.

At admission a pod has no UID, and often no name because the API server generates it later. The volume of its service
account token has a random name, which identifies it. Without that, pods of one controller are matched in their order.

A client that is no API server can make reviews of pods up, and no certificate shows it unless one is required. So the
pods that are not seen have little time, and leave places to those that are.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from webhook.kube.pod.pod_identity import PodIdentity

# The memory of the entries, of 3,072 pods at most. A pod is seen within milliseconds, so there are few of them unless
# none is ever created.
BUDGET_BYTES = 24 * 1024 * 1024
# With a live view, a pod that is not seen after this time was refused after the webhook, or was made up. The watch
# shows a pod within milliseconds.
UNSEEN_SECONDS = 5.0
# A second's pods of a fast client. More of a namespace are seen late, never created, or refused by a quota: a namespace
# must not take the room of others with pods that do not exist.
MOST_OF_A_NAMESPACE = 250


class _Admitted(NamedTuple):
    key: Hashable
    until_seconds: float
    size_bytes: int
    namespace: str


class AdmittedPods:
    """Numbers of pods by identity. Not thread-safe."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._used_bytes = 0
        self._admitted: OrderedDict[int, _Admitted] = OrderedDict()
        self._numbers: dict[Hashable, list[int]] = {}
        self._pods_of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._admitted)

    def has_place(self, namespace: str) -> bool:
        """Return whether another pod of `namespace` may be added."""
        return self._pods_of[namespace] < MOST_OF_A_NAMESPACE

    def add(self, number: int, identity: PodIdentity, until_seconds: float, size_bytes: int) -> None:
        """Add the pod `number`, which takes `size_bytes`; it is given up at `until_seconds`, which never decreases."""
        key = identity_keys(identity)[0]
        self._admitted[number] = _Admitted(key, until_seconds, size_bytes, identity.namespace)
        self._pods_of[identity.namespace] += 1
        self._numbers.setdefault(key, []).append(number)
        self._used_bytes += size_bytes

    def take(self, identity: PodIdentity) -> int | None:
        """Remove and return the number of the first pod with `identity`, or None if there is none.

        It is seen in the cluster.
        """
        for key in identity_keys(identity):
            if numbers := self._numbers.get(key):
                number = numbers[0]
                self.discard(number)
                return number
        return None

    def take_same(self, identity: PodIdentity) -> int | None:
        """Remove and return the pod that `identity` proves to be the same, if any: it is admitted again."""
        number = self.find_same(identity)
        if number is not None:
            self.discard(number)
        return number

    def find_same(self, identity: PodIdentity) -> int | None:
        """Return the number of the pod that `identity` proves to be the same; other threads may call this."""
        if not identity.name and not identity.token_volume:
            return None
        return next(iter(self._numbers.get(identity_keys(identity)[0], ())), None)

    def take_given_up(self, now_seconds: float) -> list[int]:
        """Remove and return the pods whose time has passed, and the oldest ones beyond the memory budget."""
        found: list[int] = []
        while self._admitted:
            number, oldest = next(iter(self._admitted.items()))
            if oldest.until_seconds > now_seconds and self._used_bytes <= self._budget_bytes:
                break
            self.discard(number)
            found.append(number)
        return found

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


def identity_keys(identity: PodIdentity) -> list[Hashable]:
    """Return what an admitted pod can be found by, the most certain first. Only a volume proves that it is the pod."""
    namespace, name, generate_name, controller, token_volume = identity
    found: list[Hashable] = [(namespace, "volume", token_volume)] if token_volume else []
    if name:
        found.append((namespace, "name", name))
    found.append((namespace, generate_name, controller))
    return found
