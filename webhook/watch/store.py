"""A store for the objects of a reflector that are not in the view of the cluster."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from webhook.cluster.cache.cluster_cache import ClusterCache, InvalidObject
from webhook.documents.documents import JsonObject


class ObjectsByName:
    """The objects of one kind by name, or None before they are known. Each change sets `changed`."""

    def __init__(self, changed: asyncio.Event | None = None) -> None:
        self.by_name: dict[str, JsonObject] | None = None
        self.is_unknown = False
        self.changed = changed or asyncio.Event()
        self._listed: dict[str, JsonObject] = {}

    def listing(self, _: str) -> Self:
        """Begin a new list, which replaces the objects once it is complete."""
        self._listed = {}
        return self

    def add(self, items: Iterable[JsonObject]) -> list[InvalidObject]:
        """Add objects to the new list."""
        self._listed |= {each["metadata"]["name"]: each for each in items}
        return []

    def finish(self) -> None:
        """Complete the new list."""
        listed, self._listed = self._listed, {}
        self.replace(listed)

    def replace(self, objects: dict[str, JsonObject]) -> None:
        """Replace all objects by a complete list."""
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
        """Drop the objects, because they cannot be read."""
        if not self.is_unknown:
            self.by_name, self.is_unknown = None, True
            self.changed.set()


Store = ClusterCache | ObjectsByName
"""The store of the objects that a reflector reads."""


async def changed_within(changed: asyncio.Event, seconds: float) -> None:
    """Return once `changed` is set, or after `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
