"""A queue that gives each namespace and each user its share, however much others put in."""

import math
import re
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

# Work is forgotten by half in this time: who has been quiet for a minute is a newcomer again.
_HALF_LIFE_SECONDS = 5.0
# So many namespaces and users are remembered; of those beyond, the ones with the least work are forgotten.
_MOST_REMEMBERED = 4096
_FORGOTTEN_SECONDS = 1e-4
_QUIET_SECONDS = 20 * _HALF_LIFE_SECONDS

# The API server writes both before the object; anything else that calls is not worth more of a look.
_HEAD_BYTES = 4096
_NAMESPACE = re.compile(rb'"namespace":\s*"([^"]{1,253})"')
_USER = re.compile(rb'"username":\s*"([^"]{1,253})"')
_SYSTEM = b"system:"


def payers(body: bytes) -> tuple[bytes, ...]:
    """Return on whose account the work for an AdmissionReview goes: its namespace, and its user.

    A user whose name begins with `system:` is a component of the cluster and works for others: its namespace pays. The
    names are looked up in the bytes, since parsing a review is a part of the work; nothing but the order of work
    depends on them.
    """
    head = body[:_HEAD_BYTES]
    namespace, user = _NAMESPACE.search(head), _USER.search(head)
    found = [b"namespace " + namespace[1]] if namespace else [b"namespace"]
    if user and not user[1].startswith(_SYSTEM):
        found.append(b"user " + user[1])
    return tuple(found)


class Ledger:
    """How much work each payer has had lately: what was charged is forgotten by half in five seconds."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._worked: dict[bytes, tuple[float, float]] = {}
        self._charged_seconds = -math.inf

    def __len__(self) -> int:
        return len(self._worked)

    def charge(self, payers: tuple[bytes, ...], seconds: float) -> None:
        """Note that so many seconds were worked on the account of each of `payers`."""
        now_seconds = self._charged_seconds = self._monotonic_seconds()
        for payer in payers:
            self._worked[payer] = self._left_seconds(payer, now_seconds) + seconds, now_seconds
        if len(self._worked) > _MOST_REMEMBERED:
            self._forget(now_seconds)

    def worked_seconds(self, payers: Iterable[bytes]) -> float:
        """Return how much work that one of `payers` has had who has had the most."""
        now_seconds = self._monotonic_seconds()
        if now_seconds - self._charged_seconds > _QUIET_SECONDS:
            self._worked.clear()
        return max([self._left_seconds(payer, now_seconds) for payer in payers], default=0.0)

    def _left_seconds(self, payer: bytes, now_seconds: float) -> float:
        found = self._worked.get(payer)
        if found is None:
            return 0.0
        left_seconds: float = found[0] * 0.5 ** ((now_seconds - found[1]) / _HALF_LIFE_SECONDS)
        if left_seconds < _FORGOTTEN_SECONDS:
            del self._worked[payer]
            return 0.0
        return left_seconds

    def _forget(self, now_seconds: float) -> None:
        left = {payer: self._left_seconds(payer, now_seconds) for payer in list(self._worked)}
        for payer in sorted(left, key=left.__getitem__)[: len(left) // 2]:
            self._worked.pop(payer, None)


class FairQueue(Generic[T]):
    """Items in the order of the work that their payers have had lately, the least first; of equals the first to come.

    An item counts for that of its payers who has had the most: so a user gets no more by using many namespaces, and a
    namespace none by having many users. The time to take the next item grows with the number that wait.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[tuple[T, tuple[bytes, ...]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, payers: tuple[bytes, ...]) -> None:
        """Let `item` wait for its turn."""
        self._waiting.append((item, payers))

    def take(self) -> T:
        """Return the item whose turn it is.

        Raises:
            IndexError: none waits.
        """
        if not self._waiting:
            raise IndexError("nothing waits")
        worked: dict[tuple[bytes, ...], float] = {}
        best, least = 0, float("inf")
        for place, (_, payers) in enumerate(self._waiting):
            if payers not in worked:
                worked[payers] = self._ledger.worked_seconds(payers)
            if worked[payers] < least:
                best, least = place, worked[payers]
        return self._waiting.pop(best)[0]

    def remove(self, item: T) -> None:
        """Let `item` wait no longer, if it does."""
        self._waiting = [entry for entry in self._waiting if entry[0] is not item]
