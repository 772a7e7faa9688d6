"""A fair queue over client addresses and, within an address, over flows as in API Priority and Fairness."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

# Usage decays by half in this time: a flow that was idle for a minute counts as new.
_HALF_LIFE_SECONDS = 5.0
# Beyond this number the flows with the least usage are forgotten.
_MAX_FLOWS = 4096
_NEGLIGIBLE_SECONDS = 1e-4
_IDLE_SECONDS = 20 * _HALF_LIFE_SECONDS

# As much as the sparse flows of FQ-CoDel may be ahead of others, which is four normal reviews.
# Source: RFC 8290, section 4.1
_SPARSE_SECONDS = 0.01

# The API server writes both names before the object, so searching the start of the body is enough.
_HEAD_BYTES = 4096
_NAMESPACE = re.compile(rb'"namespace":\s*"([^"]{1,253})"')
_USER = re.compile(rb'"username":\s*"([^"]{1,253})"')
_SYSTEM = b"system:"


def flows(body: bytes) -> tuple[bytes, ...]:
    """Return the flows of an AdmissionReview: its namespace and its user.

    A user whose name begins with `system:` is a component of the cluster that acts for others, so only its namespace
    counts. The names are searched in the raw bytes, because parsing a review is part of the work. Only the order of the
    work depends on them.
    """
    head = body[:_HEAD_BYTES]
    namespace, user = _NAMESPACE.search(head), _USER.search(head)
    found = [b"namespace " + namespace[1]] if namespace else [b"namespace"]
    if user and not user[1].startswith(_SYSTEM):
        found.append(b"user " + user[1])
    return tuple(found)


class UsageTracker:
    """The recent work for each flow in seconds. It halves every five seconds."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self.used: dict[bytes, tuple[float, float]] = {}
        """The work of each flow when it was last charged, and that time in seconds."""
        self._last_charge_seconds = -math.inf

    def charge(self, flows: tuple[bytes, ...], seconds: float) -> None:
        """Add `seconds` of work to each of `flows`."""
        now_seconds = self._last_charge_seconds = self._monotonic_seconds()
        for flow in flows:
            self.used[flow] = self._decayed_seconds(flow, now_seconds) + seconds, now_seconds
        if len(self.used) > _MAX_FLOWS:
            self._evict_least_used(now_seconds)

    def used_seconds(self, flows: Iterable[bytes]) -> float:
        """Return the largest recent work of `flows` in seconds."""
        now_seconds = self._monotonic_seconds()
        if now_seconds - self._last_charge_seconds > _IDLE_SECONDS:
            self.used.clear()
        return max([self._decayed_seconds(flow, now_seconds) for flow in flows], default=0.0)

    def _decayed_seconds(self, flow: bytes, now_seconds: float) -> float:
        found = self.used.get(flow)
        if found is None:
            return 0.0
        decayed_seconds: float = found[0] * 0.5 ** ((now_seconds - found[1]) / _HALF_LIFE_SECONDS)
        if decayed_seconds < _NEGLIGIBLE_SECONDS:
            del self.used[flow]
            return 0.0
        return decayed_seconds

    def _evict_least_used(self, now_seconds: float) -> None:
        left = {flow: self._decayed_seconds(flow, now_seconds) for flow in list(self.used)}
        for flow in sorted(left, key=left.__getitem__)[: len(left) // 2]:
            self.used.pop(flow, None)


class FairQueue(Generic[T]):
    """A queue that shares time equally among the client addresses that have waiting items.

    Within an address, `take` returns the item whose flows have the least recent work, or the first of equal items. The
    work of an item is that of its busiest flow. So a user gains nothing by using many namespaces, and a namespace gains
    nothing by having many users. Time is shared by address first, because only an API server verifies namespace and
    user: another client can invent these, but not its address. An address gets its share from the moment when it begins
    to wait; it does not catch up for the time before. All methods except `put` take time linear in the number of items.
    """

    def __init__(self, usage: UsageTracker) -> None:
        self._usage = usage
        self._waiting: list[tuple[T, tuple[bytes, ...], str]] = []
        # Start-time fair queueing: the virtual time, and that at which the work of an address ends.
        # Source: P. Goyal, H. M. Vin, H. Cheng, Start-time Fair Queuing, SIGCOMM 1996
        self._virtual_seconds = 0.0
        self._end_seconds: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, flows: tuple[bytes, ...], address: str) -> None:
        """Add `item`."""
        self._waiting.append((item, flows, address))

    def waiting_of(self, address: str) -> int:
        """Return the number of waiting items of `address`."""
        return sum(of == address for _, _, of in self._waiting)

    def take(self) -> T:
        """Remove the next item and return it.

        Raises:
            IndexError: the queue is empty.
        """
        if not self._waiting:
            raise IndexError("the queue is empty")
        address, used = self._next_address(), dict[tuple[bytes, ...], float]()
        best, least = 0, math.inf
        for place, (_, flows, of) in enumerate(self._waiting):
            if of != address:
                continue
            if flows not in used:
                used[flows] = self._usage.used_seconds(flows)
            if used[flows] < least:
                best, least = place, used[flows]
        return self._waiting.pop(best)[0]

    def take_last(self, address: str) -> T:
        """Remove and return the item, the last of equal ones, whose flows have the most recent work."""
        places = [place for place, (_, _, of) in enumerate(self._waiting) if of == address]
        used = {flows: self._usage.used_seconds(flows) for flows in {self._waiting[place][1] for place in places}}
        return self._waiting.pop(max(places, key=lambda place: (used[self._waiting[place][1]], place)))[0]

    def charge(self, address: str, seconds: float) -> None:
        """Add `seconds` of work of `address`. It only counts while others wait."""
        if self._waiting:
            self._end_seconds[address] = self._start_seconds(address) + seconds
        else:
            self._end_seconds.clear()

    def _next_address(self) -> str:
        """Return the address whose next work starts first. Among equal addresses, it is the one whose item came first.

        The work of an address with a single item starts a little earlier, because it does not build up a queue.
        """
        waiting = Counter(of for _, _, of in self._waiting)
        starts_seconds = {of: self._start_seconds(of) for of in waiting}
        # Not the start of the address that goes before others: they would lose what it is ahead, each time.
        self._virtual_seconds = min(starts_seconds.values())
        return min(waiting, key=lambda of: starts_seconds[of] - (_SPARSE_SECONDS if waiting[of] == 1 else 0.0))

    def _start_seconds(self, address: str) -> float:
        return max(self._end_seconds.get(address, 0.0), self._virtual_seconds)

    def remove(self, item: T) -> None:
        """Remove `item` if it waits."""
        self._waiting = [entry for entry in self._waiting if entry[0] is not item]
