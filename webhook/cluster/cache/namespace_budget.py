"""A memory limit that namespaces share, because users decide how many objects there are and how large they are."""

from dataclasses import is_dataclass
from typing import Any

# Measured: an object with its header, and the slot that refers to it.
_VALUE_BYTES = 64
_MAPPING_ENTRY_BYTES = 48


class NamespaceBudget:
    """The bytes of each namespace. While `left_bytes` is negative, the largest namespace must drop objects."""

    def __init__(self, budget_bytes: int) -> None:
        self.left_bytes = budget_bytes
        self._bytes_of: dict[str, int] = {}

    def use(self, namespace: str, size_bytes: int) -> None:
        """Add `size_bytes`, which can be negative, to the bytes of the namespace."""
        self.left_bytes -= size_bytes
        left = self._bytes_of.get(namespace, 0) + size_bytes
        if left:
            self._bytes_of[namespace] = left
        else:
            self._bytes_of.pop(namespace, None)

    def largest(self) -> str:
        """Return the namespace with the most bytes."""
        return max(self._bytes_of, key=self._bytes_of.__getitem__)


def memory_bytes(facts: object, most_bytes: int) -> int:
    """Return an estimate of the memory of `facts`. Above `most_bytes`, it is only a lower bound."""
    size_bytes, left = 0, [facts]
    while left and size_bytes <= most_bytes:
        value: Any = left.pop()
        size_bytes += _VALUE_BYTES
        # The most frequent types first: this is done for each event.
        if isinstance(value, str):
            size_bytes += len(value)
        elif isinstance(value, tuple | frozenset):
            size_bytes += 8 * len(value)
            left += value
        elif isinstance(value, dict):
            size_bytes += _MAPPING_ENTRY_BYTES * len(value)
            left += value
            left += value.values()
        elif is_dataclass(value):
            left += [getattr(value, name) for name in value.__dataclass_fields__]
    return size_bytes
