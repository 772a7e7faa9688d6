"""The objects that a view leaves out, although it knows their kind: too large, malformed, or too many.

Results that depend on such an object are unknown; the object does not count as missing. For a running pod, only a part
can be left out. The kind is then the name of the part, and the namespace is that of the pods that depend on it, or
`ALL_NAMESPACES`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

POD_LABELS, POD_PORTS, POD_VOLUMES = "labels of a Pod", "ports of a Pod", "volumes of a Pod"
POD_REPULSION, POD_PREFERENCES = "required anti-affinity of a Pod", "other affinity of a Pod"
ALL_NAMESPACES = ""


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """The names of the objects that are left out, by kind and namespace, without empty sets."""

    names: Mapping[tuple[str, str], AbstractSet[str]]

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether the object is left out."""
        return name in self.names.get((kind, namespace), ())

    def has_any(self, kind: str) -> bool:
        """Return whether an object of `kind` is left out."""
        return any(of == kind for of, _ in self.names)

    @property
    def count(self) -> int:
        """Return the number of objects."""
        return sum(map(len, self.names.values()))


NOTHING_LEFT_OUT = LeftOut({})


class LeftOutTracker:
    """Keeps the objects that are left out. `has_changed`: `current` will return a new value. Not thread-safe."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], set[str]] = {}
        self._changed: set[tuple[str, str]] = set()
        self._shown = NOTHING_LEFT_OUT
        self.has_changed = False

    def names(self, kind: str) -> list[tuple[str, str]]:
        """Return the namespace and name of each object of `kind`."""
        return [(namespace, name) for (of, namespace), names in self._names.items() if of == kind for name in names]

    def add(self, kind: str, namespace: str, name: str) -> None:
        """Leave out an object."""
        self._names.setdefault((kind, namespace), set()).add(name)
        self._note((kind, namespace))

    def discard(self, kind: str, namespace: str, name: str) -> bool:
        """Record that an object is not left out. Return whether it was left out before."""
        names = self._names.get((kind, namespace))
        if names is None or name not in names:
            return False
        names.discard(name)
        if not names:
            del self._names[kind, namespace]
        self._note((kind, namespace))
        return True

    def current(self) -> LeftOut:
        """Return the objects. The value is the same object until a change."""
        if self.has_changed:
            names = dict(self._shown.names)
            for each in self._changed:
                names[each] = frozenset(self._names.get(each, ()))
            self._changed.clear()
            self.has_changed = False
            self._shown = LeftOut({each: found for each, found in names.items() if found})
        return self._shown

    def _note(self, changed: tuple[str, str]) -> None:
        self._changed.add(changed)
        self.has_changed = True
