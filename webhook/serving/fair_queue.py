"""A queue that gives each namespace and each user its share, however much others put in."""

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

# Work is forgotten by half in this time: who has been quiet for a minute is a newcomer again.
_HALF_LIFE_SECONDS = 5.0
# So many namespaces and users are remembered; of those beyond, the ones with the least work are forgotten.
_MOST_REMEMBERED = 4096
_FORGOTTEN_SECONDS = 1e-4

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


class FairQueue(Generic[T]):
    """Items in the order of the work that their payers have had lately, the least first; of equals the first to come.

    An item counts for that of its payers who has had the most: so a user gets no more by using many namespaces, and a
    namespace none by having many users. The time to take the next item grows with the number that wait.
    """

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._waiting: list[tuple[T, Sequence[bytes]]] = []
        self._worked: dict[bytes, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_anyone_known(self) -> bool:
        """Whether there is a payer who has had any work."""
        return bool(self._worked)

    def put(self, item: T, payers: Sequence[bytes]) -> None:
        """Let `item` wait for its turn."""
        self._waiting.append((item, payers))

    def take(self) -> T:
        """Return the item whose turn it is.

        Raises:
            IndexError: none waits.
        """
        if not self._waiting:
            raise IndexError("nothing waits")
        now_seconds = self._monotonic_seconds()
        worked: dict[bytes, float] = {}
        best, least = 0, float("inf")
        for place, (_, payers) in enumerate(self._waiting):
            for payer in payers:
                if payer not in worked:
                    worked[payer] = self._worked_seconds(payer, now_seconds)
            most = max([worked[payer] for payer in payers], default=0.0)
            if most < least:
                best, least = place, most
        return self._waiting.pop(best)[0]

    def remove(self, item: T) -> None:
        """Let `item` wait no longer, if it does."""
        self._waiting = [entry for entry in self._waiting if entry[0] is not item]

    def charge(self, payers: Sequence[bytes], seconds: float) -> None:
        """Note that so many seconds were worked on the account of `payers`."""
        now_seconds = self._monotonic_seconds()
        for payer in payers:
            self._worked[payer] = self._worked_seconds(payer, now_seconds) + seconds, now_seconds
        if len(self._worked) > _MOST_REMEMBERED:
            self._forget(now_seconds)

    def worked_seconds(self, payers: Sequence[bytes]) -> float:
        """Return how much work that of `payers` has had lately who has had the most."""
        now_seconds = self._monotonic_seconds()
        return max([self._worked_seconds(payer, now_seconds) for payer in payers], default=0.0)

    def _worked_seconds(self, payer: bytes, now_seconds: float) -> float:
        found = self._worked.get(payer)
        if found is None:
            return 0.0
        left_seconds: float = found[0] * 0.5 ** ((now_seconds - found[1]) / _HALF_LIFE_SECONDS)
        if left_seconds < _FORGOTTEN_SECONDS:
            del self._worked[payer]
            return 0.0
        return left_seconds

    def _forget(self, now_seconds: float) -> None:
        by_work = sorted(self._worked, key=lambda payer: self._worked_seconds_of_known(payer, now_seconds))
        for payer in by_work[: len(by_work) // 2]:
            del self._worked[payer]

    def _worked_seconds_of_known(self, payer: bytes, now_seconds: float) -> float:
        seconds, at_seconds = self._worked[payer]
        return float(seconds * 0.5 ** ((now_seconds - at_seconds) / _HALF_LIFE_SECONDS))
