"""The pods that are known from their admission alone: which of them a pod of the cluster is, and when to give up.

At admission a pod has no UID, and often no name because the API server generates it later. The volume of its service
account token has a random name, which identifies it. Without that, pods of one controller are matched in their order.

A client that is no API server can make reviews of pods up, and no certificate shows it unless one is required. But only
the pods of an API server appear in the cluster. So without certificates, only reviews of its own address find the room
of a pod taken until it is seen (`UnconfirmedPods`), and an address has few such pods until one of its pods is seen with
the token volume of its admission, which another client cannot guess.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
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
# More unseen pods of an address are not kept, unless a pod of it was seen. These are enough for that.
_MOST_OF_AN_ADDRESS = 64
_MOST_OF_A_SEEN_ADDRESS = 500
# Beyond this number of addresses, API servers show anew that they are such.
_MOST_ADDRESSES = 1024


class _Admitted(NamedTuple):
    key: Hashable
    until_seconds: float
    size_bytes: int
    address: str
    # Any client can name a namespace, so another one must not use its places up: without certificates, one for each.
    namespace: tuple[str, str]


class AdmittedPods:
    """Numbers of pods by identity. Not thread-safe.

    `are_verified`: all clients have presented a certificate.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES, *, are_verified: bool = True) -> None:
        self.are_verified = are_verified
        self._seen_addresses: set[str] = set()
        self._budget_bytes = budget_bytes
        self._used_bytes = 0
        self._admitted: OrderedDict[int, _Admitted] = OrderedDict()
        self._numbers: dict[Hashable, list[int]] = {}
        self._pods_of: dict[str | tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._admitted)

    def has_place(self, namespace: str, address: str = "") -> bool:
        """Return whether another pod of `namespace` may be added, which is admitted for the client at `address`."""
        if not self.are_verified:
            most = _MOST_OF_A_SEEN_ADDRESS if address in self._seen_addresses else _MOST_OF_AN_ADDRESS
            if self._pods_of.get(address, 0) >= most:
                return False
        return self._pods_of.get((namespace, "" if self.are_verified else address), 0) < MOST_OF_A_NAMESPACE

    def add(self, number: int, identity: PodIdentity, until_seconds: float, size_bytes: int, address: str = "") -> None:
        """Add the pod `number`, which takes `size_bytes`; it is given up at `until_seconds`, which never decreases."""
        key = identity_keys(identity)[0]
        namespace = identity.namespace, "" if self.are_verified else address
        self._admitted[number] = _Admitted(key, until_seconds, size_bytes, address, namespace)
        for owner in (address, namespace):
            self._pods_of[owner] = self._pods_of.get(owner, 0) + 1
        self._numbers.setdefault(key, []).append(number)
        self._used_bytes += size_bytes

    def take(self, identity: PodIdentity) -> int | None:
        """Remove and return the number of the pod with `identity`, of several the first; None if there is none.

        It is seen in the cluster, and with it the address that it was admitted for if its token volume proves that.
        Others with its name or volume, which another client made up, are given up next.
        """
        for at, key in enumerate(identity_keys(identity)):
            if numbers := self._numbers.get(key):
                number, *others = numbers
                for each in others if at < bool(identity.token_volume) + bool(identity.name) else ():
                    self._admitted[each] = self._admitted[each]._replace(until_seconds=-math.inf)
                    self._admitted.move_to_end(each, last=False)
                if at == 0 and identity.token_volume and not self.are_verified:
                    if len(self._seen_addresses) >= _MOST_ADDRESSES:
                        self._seen_addresses.clear()
                    self._seen_addresses.add(self._admitted[number].address)
                self.discard(number)
                return number
        return None

    def is_proof(self, identity: PodIdentity) -> bool:
        """Return whether no other client can know `identity`; any client can know the name of a pod."""
        return self.are_verified or bool(identity.token_volume)

    def take_same(self, identity: PodIdentity, address: str = "") -> int | None:
        """Remove and return the pod that `identity` proves to be the same; None if there is none.

        It is admitted again, for the client at `address`: a name is proof only where that admitted it before.
        """
        if not identity.name and not identity.token_volume:
            return None
        for number in self._numbers.get(identity_keys(identity)[0], ()):
            if self.are_verified or identity.token_volume or self._admitted[number].address == address:
                self.discard(number)
                return number
        return None

    def find_same(self, identity: PodIdentity) -> tuple[int, ...]:
        """Return the numbers of the pod that `identity` proves to be the same; other threads may call this.

        There are several if more than one client admitted a pod of this name.
        """
        if not identity.name and not identity.token_volume:
            return ()
        return tuple(self._numbers.get(identity_keys(identity)[0], ()))

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
        for owner in (known.address, known.namespace):
            self._pods_of[owner] -= 1
            if not self._pods_of[owner]:
                del self._pods_of[owner]
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
