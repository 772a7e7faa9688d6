"""Store equal values once: tens of thousands of pods come from a few templates, and nodes have the same images."""

from collections.abc import Hashable
from typing import Any, TypeVar

V = TypeVar("V")

# The cache is cleared when it has this many values; existing objects keep theirs.
_MOST = 20_000


class Interner:
    """Returns one shared value for all equal values, which must be immutable. An instance is for one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def known_or(self, value: V, key: Hashable) -> V:
        """Return the value of earlier calls with `key`, or `value`; values with one key must be equal."""
        known: V | None = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = value
        return known
