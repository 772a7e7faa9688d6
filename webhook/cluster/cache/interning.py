"""Store equal values once: tens of thousands of pods come from a few templates."""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

# The cache is cleared when it has this many values; existing objects keep theirs.
_MOST = 20_000


class Interner:
    """Returns one shared value for all equal values, which must be immutable."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def shared(self, facts: T) -> T:
        """Return `facts` with strings, mappings and tuples replaced by equal ones of earlier calls."""
        before = {field.name: getattr(facts, field.name) for field in fields(facts)}
        after = {name: self._shared(value) for name, value in before.items()}
        different = {name: value for name, value in after.items() if value is not before[name]}
        return replace(facts, **different) if different else facts

    def shared_bytes(self, value: bytes) -> bytes:
        """Return `value`, or an equal one of earlier calls."""
        known: bytes = self._known_or(value, (bytes, value))
        return known

    def _shared(self, value: Any) -> Any:
        if isinstance(value, str):
            return sys.intern(value)
        if not value or not isinstance(value, (Mapping, tuple)):
            return value
        return self._known_or(value, (type(value), frozenset(value.items()) if isinstance(value, Mapping) else value))

    def _known_or(self, value: Any, key: Hashable) -> Any:
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = value
        return known
