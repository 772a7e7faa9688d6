"""The objects of OPTIONAL_KINDS that lists and events told of."""

from collections.abc import KeysView
from typing import Any

from webhook.cluster.cache.object_key import Key
from webhook.cluster.optional_kinds import OPTIONAL_KINDS, Facts, snapshot_fields


class OptionalObjects:
    """The facts of objects by kind.

    A kind is told of while all of it is known: half of the claims would make the others missing ones.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Facts]] = {kind: {} for kind in OPTIONAL_KINDS}
        self._known: set[str] = set()
        self._changed: set[str] = set()

    @property
    def has_changed(self) -> bool:
        """Whether `changed_fields` has something to tell."""
        return bool(self._changed)

    def keys(self, kind: str) -> KeysView[Key]:
        """The objects of `kind`."""
        return self._objects[kind].keys()

    def put(self, kind: str, key: Key, facts: Facts | None) -> None:
        """Hold `facts` of an object; None: take it out."""
        objects = self._objects[kind]
        if objects.get(key) == facts:
            return
        if facts is None:
            del objects[key]
        else:
            objects[key] = facts
        if kind in self._known:
            self._changed.add(OPTIONAL_KINDS[kind].field)

    def set_known(self, kind: str, *, known: bool) -> None:
        """Take note that all objects of `kind` have been put in, or that nothing is known of it any more."""
        if (kind in self._known) is known:
            return
        (self._known.add if known else self._known.discard)(kind)
        self._changed.add(OPTIONAL_KINDS[kind].field)

    def changed_fields(self) -> dict[str, Any]:
        """The fields of a snapshot that have become other ones since this was last asked."""
        fields = snapshot_fields({kind: self._objects[kind].values() for kind in self._known}, self._changed)
        self._changed.clear()
        return fields
