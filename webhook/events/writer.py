"""Writes Events: creates one, or raises the count of the one that this or another replica has created.

The writer needs the verbs create and patch only: an empty patch returns the Event without changing it.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple

from webhook.documents.documents import field
from webhook.events.backlog import COMPONENT, PendingEvent
from webhook.runtime.byte_cache import ByteCache
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, JsonObject

_KNOWN_BYTES = 1024 * 1024
_KNOWN_ENTRY_BYTES = 512
# Other replicas change an Event once a second at most.
_ATTEMPTS = 5
_QUERY = {"fieldManager": COMPONENT}


class _Known(NamedTuple):
    """The count and the resourceVersion of an Event."""

    times: int
    resource_version: str


class EventWriter:
    """Writes the Events of `replica`. It calls `pace` before each request."""

    def __init__(self, replica: str, pace: Callable[[], Awaitable[None]]) -> None:
        self._replica = replica
        self._pace = pace
        self._known: ByteCache[tuple[str, str], _Known] = ByteCache(_KNOWN_BYTES)

    async def write(self, server: ApiServer, event: PendingEvent) -> None:
        """Create `event`, or add its count to the Event of its name, unless it happens once.

        Raises:
            ApiServerError: the API server did not accept it.
        """
        for _ in range(_ATTEMPTS):
            known = self._known.get((event.namespace, event.key))
            try:
                self._remember(event, await self._send(server, event, known))
            except ApiServerError as error:
                if error.code == HTTPStatus.CONFLICT and event.happens_once:
                    return
                if error.code == HTTPStatus.CONFLICT:
                    await self._look_up(server, event)
                elif error.code == HTTPStatus.NOT_FOUND and known is not None:
                    self._known.drop((event.namespace, event.key))
                else:
                    raise
            else:
                return
        raise ApiServerError(f"the Event {event.key} changes all the time", HTTPStatus.CONFLICT)

    async def _send(self, server: ApiServer, event: PendingEvent, known: _Known | None) -> JsonObject:
        await self._pace()
        if known is None:
            return await server.create(_path(event), event.manifest(self._replica), _QUERY)
        patch = event.patch(known.times, known.resource_version)
        return await server.patch(f"{_path(event)}/{event.key}", patch, _QUERY)

    async def _look_up(self, server: ApiServer, event: PendingEvent) -> None:
        """Learn the count of the Event that another replica, or this one before a restart, has written."""
        await self._pace()
        try:
            self._remember(event, await server.patch(f"{_path(event)}/{event.key}", {}, _QUERY))
        except ApiServerError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            self._known.drop((event.namespace, event.key))

    def _remember(self, event: PendingEvent, content: JsonObject) -> None:
        count = field(content, "count")
        known = _Known(count if isinstance(count, int) else 1, str(field(content, "metadata", "resourceVersion") or ""))
        self._known.put((event.namespace, event.key), known, _KNOWN_ENTRY_BYTES + len(event.key))


def _path(event: PendingEvent) -> str:
    return f"/api/v1/namespaces/{event.namespace}/events"
