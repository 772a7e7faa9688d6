"""An LRU cache that is limited by the memory of its entries, because users control the size of an entry."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# The slot in the dict, the key and the tuple of the entry.
_ENTRY_BYTES = 256

# A Python object for a JSON value, with its slot in the container; measured at 60 to 120 bytes.
_VALUE_BYTES = 128


class ByteCache(Generic[K, V]):
    """Keep the most recently used entries that fit into `budget_bytes`. Not thread-safe.

    An entry larger than a quarter of the budget is not stored, because it would evict most others. The `least` most
    recently used entries are kept regardless of their size; use this only if no user controls the size. A budget of 0
    keeps no entries.
    """

    def __init__(self, budget_bytes: int, least: int = 0) -> None:
        self.budget_bytes = budget_bytes
        self._least = least if budget_bytes else 0
        self.used_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of `key` and mark it as used, or None if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size_bytes: int) -> bool:
        """Store `value`, evict the least recently used entries, and return False if it is too large."""
        self.drop(key)
        size_bytes += _ENTRY_BYTES
        if size_bytes * 4 > self.budget_bytes and not self._least:
            return False
        self._entries[key] = value, size_bytes
        self.used_bytes += size_bytes
        while self.used_bytes > self.budget_bytes and len(self._entries) > self._least:
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self.used_bytes -= freed_bytes
        return True

    def drop(self, key: K) -> None:
        """Remove `key`."""
        found = self._entries.pop(key, None)
        if found is not None:
            self.used_bytes -= found[1]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.used_bytes = 0


def parsed_bytes(data: bytes) -> int:
    """Return an upper estimate of the memory of the parsed JSON in `data`, including its strings."""
    return len(data) + _VALUE_BYTES * value_count(data)


def value_count(data: bytes) -> int:
    """Return an upper bound of the number of values in the JSON `data`, without parsing it."""
    return 1 + len(data) - len(data.translate(None, b",:{["))
