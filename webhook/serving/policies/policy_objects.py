"""The objects of one kind in a cluster, such as PlacementPolicies, as a reflector keeps them."""

import asyncio
from collections.abc import Iterable

from webhook.cluster.cache.cluster_cache import InvalidObject
from webhook.documents.documents import JsonObject


class PolicyObjects:
    """The objects by name, as a reflector keeps them; None before they are known. `changed` is set by each change."""

    def __init__(self, changed: asyncio.Event | None = None) -> None:
        self.by_name: dict[str, JsonObject] | None = None
        self.is_unknown = False
        self.changed = changed or asyncio.Event()

    def listing(self, _: str) -> "_Listing":
        """Return a new list."""
        return _Listing(self)

    def replace(self, objects: dict[str, JsonObject]) -> None:
        """Take a complete list."""
        self.by_name, self.is_unknown = objects, False
        self.changed.set()

    def apply(self, _: str, event: str, content: JsonObject) -> InvalidObject | None:
        """Apply an event of a watch."""
        objects, name = self.by_name if self.by_name is not None else {}, content["metadata"]["name"]
        if event == "DELETED":
            objects.pop(name, None)
        else:
            objects[name] = content
        self.changed.set()
        return None

    def mark_unknown(self, _: str) -> None:
        """Forget the objects: they cannot be read."""
        if not self.is_unknown:
            self.by_name, self.is_unknown = None, True
            self.changed.set()


class _Listing:
    def __init__(self, objects: PolicyObjects) -> None:
        self._objects = objects
        self._found: dict[str, JsonObject] = {}

    def add(self, items: Iterable[JsonObject]) -> list[InvalidObject]:
        """Take objects of the list."""
        self._found |= {each["metadata"]["name"]: each for each in items}
        return []

    def finish(self) -> None:
        """End the list."""
        self._objects.replace(self._found)
