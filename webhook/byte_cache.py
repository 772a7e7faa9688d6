"""A cache that is bounded by the memory of its entries, not by their number: users decide how large an entry is."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# The dict's slot, the key and the entry's tuple.
_ENTRY_BYTES = 256

# A Python object for a JSON value, with its place in its container: measured at 60 to 120 bytes.
_VALUE_BYTES = 128


class ByteCache(Generic[K, V]):
    """The entries used last, as many as fit into `budget_bytes`. An instance is for one thread.

    An entry that takes more than a quarter of the budget is not kept: it would drive out all others.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of `key`, which counts as used now, or None."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size_bytes: int) -> bool:
        """Keep `value`, of `size_bytes`, and drop what was used longest ago for it; return False if it is too large."""
        self.drop(key)
        size_bytes += _ENTRY_BYTES
        if size_bytes * 4 > self.budget_bytes:
            return False
        self._entries[key] = value, size_bytes
        self.used_bytes += size_bytes
        while self.used_bytes > self.budget_bytes:
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self.used_bytes -= freed_bytes
        return True

    def drop(self, key: K) -> None:
        """Forget `key`."""
        found = self._entries.pop(key, None)
        if found is not None:
            self.used_bytes -= found[1]

    def clear(self) -> None:
        """Forget every entry."""
        self._entries.clear()
        self.used_bytes = 0


def parsed_bytes(data: bytes) -> int:
    """Return an upper estimate of the memory of what `data`, JSON, is parsed into, the text of its strings included."""
    return len(data) + _VALUE_BYTES * value_count(data)


def value_count(data: bytes) -> int:
    """Return how many values the JSON in `data` can have at most, without parsing it."""
    return 1 + data.count(b",") + data.count(b":") + data.count(b"{") + data.count(b"[")
