"""Writes the statuses of PlacementPolicy objects to the API server."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import structlog

from webhook.documents.documents import JsonObject
from webhook.events.report import Report, rejection_of
from webhook.events.subject import ObjectReference
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.serving.policies.policy_status import GoodGeneration, status_of
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Connect

FIELD_MANAGER = "placement-webhook"
# A merge patch would merge two specs, and drop what is null in one.
_JSON_PATCH = "application/json-patch+json"
# A status of one generation is written again at most this often: replicas of two versions could disagree on it.
_REWRITE_SECONDS = 60.0
Reported = Callable[[ObjectReference, Report], None]
_NOT_WRITTEN = "the status of a PlacementPolicy cannot be written"


class JudgedObject(NamedTuple):
    """An object as it was read, and the result: the fields are those of `status_of`."""

    content: JsonObject
    good: GoodGeneration | None
    errors: Sequence[str]
    conflict: str

    @property
    def _metadata(self) -> JsonObject:
        metadata: JsonObject = self.content["metadata"]
        return metadata

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self._metadata["name"])

    @property
    def reference(self) -> ObjectReference:
        """The object, for Events."""
        return ObjectReference(API_VERSION, KIND, "", self.name, self.version[0])

    @property
    def version(self) -> tuple[str, int]:
        """The uid and the generation of the object."""
        return str(self._metadata.get("uid")), int(self._metadata.get("generation", 0))

    def patch(self, status: JsonObject) -> list[JsonObject]:
        """Return the JSON patch that gives the object this status, unless it has changed since it was read."""
        version = self._metadata.get("resourceVersion")
        return [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": status},
        ]


class StatusWriter:
    """Writes statuses to the objects at `path`. `now` returns the time in RFC 3339.

    `on_rejected` is called for a rejected object by the one replica that has written its status.
    """

    def __init__(
        self,
        connect: Connect,
        path: str,
        now: Callable[[], str],
        monotonic_seconds: Callable[[], float] = time.monotonic,
        on_rejected: Reported = lambda *_: None,
    ) -> None:
        self._connect, self._path, self._on_rejected = connect, path, on_rejected
        self._now, self._monotonic_seconds = now, monotonic_seconds
        self._written_seconds: dict[tuple[str, int], float] = {}
        self._log = structlog.get_logger()

    async def write(self, judged: Sequence[JudgedObject]) -> None:
        """Write the statuses that differ. Another replica may have written the same: then there is nothing to write.

        A status that the API server refuses keeps no other from being written; it is logged, and tried again.

        Raises:
            ApiServerError: the API server does not answer.
        """
        versions = {each.version for each in judged}
        self._written_seconds = {key: at for key, at in self._written_seconds.items() if key in versions}
        wanted = [(each, status) for each in judged if (status := self._status(each)) is not None]
        if not wanted:
            return
        async with self._connect() as server:
            for each, status in wanted:
                await self._write(server, each, status)

    async def _write(self, server: ApiServer, judged: JudgedObject, status: JsonObject) -> None:
        query: dict[str, Any] = {"fieldManager": FIELD_MANAGER}
        try:
            await server.patch(f"{self._path}/{judged.name}/status", judged.patch(status), query, _JSON_PATCH)
        except ApiServerError as error:
            if error.code in (404, 409):
                # The object has changed or is gone. The watch reports it, and then its status is compared again.
                return
            if not error.code:
                raise
            self._log.warning(_NOT_WRITTEN, policy=judged.name, error=str(error))
        else:
            if judged.errors:
                self._on_rejected(judged.reference, rejection_of(judged.errors))
        self._written_seconds[judged.version] = self._monotonic_seconds()

    def _status(self, judged: JudgedObject) -> JsonObject | None:
        """Return the status to write; None if the object has it, or if it is too early to write one again."""
        written_seconds = self._written_seconds.get(judged.version)
        if written_seconds is not None and self._monotonic_seconds() - written_seconds < _REWRITE_SECONDS:
            return None
        return status_of(judged.content, judged.good, judged.errors, self._now(), judged.conflict)
