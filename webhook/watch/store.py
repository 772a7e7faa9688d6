"""The interface of what keeps the objects that a reflector reads."""

from collections.abc import Iterable
from typing import Protocol

from webhook.cluster.cache.cluster_cache import InvalidObject
from webhook.watch.api_server import JsonObject


class Listing(Protocol):
    """A list that is being read; it replaces all objects of the kind once it is complete."""

    def add(self, items: Iterable[JsonObject]) -> list[InvalidObject]:
        """Take objects of the list, and return those that cannot be read."""
        ...

    def finish(self) -> object:
        """End the list."""
        ...


class Store(Protocol):
    """Keeps the objects that a reflector reads."""

    def listing(self, name: str) -> Listing:
        """Return a new list of the kind `name`."""
        ...

    def apply(self, name: str, event: str, content: JsonObject) -> InvalidObject | None:
        """Apply an event of a watch: ADDED, MODIFIED or DELETED."""
        ...

    def mark_unknown(self, name: str) -> object:
        """Record that the kind cannot be read."""
        ...
