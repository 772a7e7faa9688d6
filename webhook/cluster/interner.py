"""Stores equal values once: tens of thousands of pods share theirs."""

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

V = TypeVar("V")

# The cache is cleared when it has this many values, or values of this size; existing objects keep theirs.
_MOST = 20_000
_MOST_BYTES = 16 * 1024 * 1024


class Interner:
    """Returns one shared value for all equal values, which must be immutable. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._used_bytes = 0

    def known(self, key: Hashable) -> Any:
        """Return the value of earlier calls with `key`, or None if there is none."""
        return self._known.get(key)

    def known_or(self, value: V, key: Hashable) -> V:
        """Return the value of earlier calls with `key`, or `value`; values with one key must be equal."""
        known: V | None = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST or self._used_bytes > _MOST_BYTES:
                self._known.clear()
                self._used_bytes = 0
            # The texts in a map, such as labels; other values are not large.
            texts = (*value, *value.values()) if isinstance(value, Mapping) else ()
            self._used_bytes += sum(len(each) for each in texts if isinstance(each, str))
            known = self._known[key] = value
        return known
