"""Equal values kept once: tens of thousands of pods come from a few templates."""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

# Beyond this many different values, what was shared so far is forgotten; who has it keeps it.
_MOST = 20_000


class Interner:
    """Hands out one value for all that are equal. Only for values that nobody changes."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def shared(self, facts: T) -> T:
        """`facts`, whose texts, mappings and tuples are those of earlier ones where they are equal."""
        before = {field.name: getattr(facts, field.name) for field in fields(facts)}
        after = {name: self._shared(value) for name, value in before.items()}
        different = {name: value for name, value in after.items() if value is not before[name]}
        return replace(facts, **different) if different else facts

    def _shared(self, value: Any) -> Any:
        if isinstance(value, str):
            return sys.intern(value)
        if not value or not isinstance(value, (Mapping, tuple)):
            return value
        key = (type(value), frozenset(value.items()) if isinstance(value, Mapping) else value)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = value
        return known
