"""The objects of EVERY_OPTIONAL_KIND of lists and watch events."""

from collections.abc import KeysView
from typing import Any

from webhook.cluster.cache.object_key import Key
from webhook.cluster.optional_kinds import EVERY_OPTIONAL_KIND, Facts, snapshot_fields


class OptionalObjects:
    """The facts of objects by kind.

    Snapshots contain a kind only while all its objects are known. Otherwise the unlisted ones would count as missing.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Facts]] = {kind: {} for kind in EVERY_OPTIONAL_KIND}
        self._known: set[str] = set()
        self._changed: set[str] = set()

    @property
    def has_changed(self) -> bool:
        """Return true if `changed_fields` would return a field."""
        return bool(self._changed)

    def keys(self, kind: str) -> KeysView[Key]:
        """Return the keys of the objects of `kind`."""
        return self._objects[kind].keys()

    def put(self, kind: str, key: Key, facts: Facts | None) -> None:
        """Store `facts` of an object; None: delete it."""
        objects = self._objects[kind]
        if objects.get(key) == facts:
            return
        if facts is None:
            del objects[key]
        else:
            objects[key] = facts
        if kind in self._known:
            self._changed.add(EVERY_OPTIONAL_KIND[kind].field)

    def set_known(self, kind: str, *, known: bool) -> None:
        """Mark `kind` as known, when all its objects are stored, or as not known."""
        if (kind in self._known) is known:
            return
        (self._known.add if known else self._known.discard)(kind)
        self._changed.add(EVERY_OPTIONAL_KIND[kind].field)

    def changed_fields(self) -> dict[str, Any]:
        """Return the fields of a snapshot that have changed since the last call."""
        fields = snapshot_fields({kind: self._objects[kind].values() for kind in self._known}, self._changed)
        self._changed.clear()
        return fields
