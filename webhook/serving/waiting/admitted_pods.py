"""The pods that are known from their admission alone: which of them a pod of the cluster is, and when to give up.

At admission a pod has no UID, and often no name because the API server generates it later. The volume of its service
account token has a random name, which identifies it. Without that, pods of one controller are matched in their order.

A client that is no API server can make reviews of pods up, and no certificate shows it unless one is required. But only
the pods of an API server appear in the cluster. So an address earns credit with each of its pods that is seen with the
token volume of its admission, which another client cannot guess, and pays with it for the room of one that is not seen
yet. Until a pod without credit is seen, only reviews of its own address
find its room taken (`UnconfirmedPods`).
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from webhook.kube.pod.pod_identity import PodIdentity

# The memory of the entries. A pod is seen within milliseconds, so there are few of them unless none is ever created.
BUDGET_BYTES = 24 * 1024 * 1024
# With a live view, a pod that is not seen after this time was refused after the webhook, or was made up. The watch
# shows a pod within milliseconds.
UNSEEN_SECONDS = 5.0
# A second's pods of a fast client. More of a namespace are seen late, never created, or refused by a quota: a namespace
# must not take the room of others with pods that do not exist.
MOST_OF_A_NAMESPACE = 250
# A pod that is seen pays for two that are not: the credit of an API server grows with each burst, and the pods that a
# quota refuses, which are never seen, do not use it up.
_EARNED = 2
_MOST_CREDIT = 500
# More pods of an address without credit are not kept. These are enough to learn that it is an API server's.
_MOST_WITHOUT_CREDIT = 64


class _Admitted(NamedTuple):
    namespace: str
    key: Hashable
    until_seconds: float
    size_bytes: int
    address: str
    is_paid: bool


class AdmittedPods:
    """Numbers of pods by identity. Not thread-safe.

    `are_verified`: all clients have presented a certificate, so their pods need no credit.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES, *, are_verified: bool = True) -> None:
        self._are_verified = are_verified
        self._credit: dict[str, int] = {}
        self._without_credit: dict[str, int] = {}
        self._budget_bytes = budget_bytes
        self._used_bytes = 0
        self._admitted: OrderedDict[int, _Admitted] = OrderedDict()
        self._numbers: dict[Hashable, deque[int]] = {}
        self._pods_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._admitted)

    def has_place(self, namespace: str, address: str = "") -> bool:
        """Return whether another pod of `namespace` may be added, which is admitted for the client at `address`."""
        if self._without_credit.get(address, 0) >= _MOST_WITHOUT_CREDIT:
            return False
        # Those without credit have the limit of their address; any client can name the namespace.
        return self._pods_of.get(namespace, 0) < MOST_OF_A_NAMESPACE

    def add(self, number: int, identity: PodIdentity, until_seconds: float, size_bytes: int, address: str = "") -> bool:
        """Add the pod `number`; return whether it may have room before it is seen.

        It takes `size_bytes`, and is given up at `until_seconds`, which never decreases.
        """
        key = next(identity_keys(identity))
        credit = self._credit.get(address, 0)
        is_paid = self._are_verified or credit > 0
        if not is_paid:
            self._without_credit[address] = self._without_credit.get(address, 0) + 1
        elif not self._are_verified:
            self._credit[address] = credit - 1
        self._admitted[number] = _Admitted(identity.namespace, key, until_seconds, size_bytes, address, is_paid)
        if is_paid:
            self._pods_of[identity.namespace] = self._pods_of.get(identity.namespace, 0) + 1
        self._numbers.setdefault(key, deque()).append(number)
        self._used_bytes += size_bytes
        return is_paid

    def take(self, identity: PodIdentity) -> int | None:
        """Remove and return the number of the pod with `identity`, of several the first; None if there is none.

        It is seen in the cluster, so the address that it was admitted for earns credit if its token volume proves it.
        """
        for at, key in enumerate(identity_keys(identity)):
            if numbers := self._numbers.get(key):
                known = self._admitted[number := numbers[0]]
                if at == 0 and identity.token_volume and not self._are_verified:
                    self._credit[known.address] = min(self._credit.get(known.address, 0) + _EARNED, _MOST_CREDIT)
                self.discard(number)
                return number
        return None

    def is_proof(self, identity: PodIdentity) -> bool:
        """Return whether no other client can know `identity`; any client can know the name of a pod."""
        return self._are_verified or bool(identity.token_volume)

    def take_same(self, identity: PodIdentity, address: str = "") -> int | None:
        """Remove and return the pod that `identity` proves to be the same; None if there is none.

        It is admitted again, for the client at `address`: a name is proof only where that admitted it before. A client
        that is no API server could earn credit by that, so it gets none.
        """
        if not identity.name and not identity.token_volume:
            return None
        numbers = self._numbers.get(next(identity_keys(identity)))
        if not numbers:
            return None
        number = numbers[0]
        if not (self._are_verified or identity.token_volume or self._admitted[number].address == address):
            return None
        self.discard(number)
        return number

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
        if not known.is_paid:
            self._without_credit[known.address] -= 1
            if not self._without_credit[known.address]:
                del self._without_credit[known.address]
        else:
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
