"""Looks up the objects that an Event belongs on: admitted pods, and the owner of an owner."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.events.subject import ObjectReference, Subject, controller_of
from webhook.runtime.byte_cache import ByteCache
from webhook.watch.api_errors import ApiServerError, TooLargeError
from webhook.watch.api_server import METADATA_LIST, NOT_READABLE, ApiServer, JsonObject

# Metadata alone: a pod can have 1.5 MiB, and its spec is not needed.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MOST_PODS = 500
# 500 pods have about 1.5 MiB. A user can give each pod 256 KiB of annotations, and decoding blocks the event loop.
_MOST_BYTES = 2 * 1024 * 1024
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0
_CONTROLLERS_BYTES = 1024 * 1024
_CONTROLLER_BYTES = 2048


class Pods(NamedTuple):
    """Pods, the oldest first; not `complete` if there may be more."""

    found: list[ObjectReference]
    complete: bool


class Lookup:
    """Reads pods and ReplicaSets. It calls `pace` before each request."""

    def __init__(self, pace: Callable[[], Awaitable[None]]) -> None:
        self._pace = pace
        self._controllers: ByteCache[ObjectReference, ObjectReference] = ByteCache(_CONTROLLERS_BYTES)

    async def pods(self, server: ApiServer, subject: Subject, since: float) -> Pods:
        """Return the pods of `subject` that were created after `since` (wall clock) and have no node.

        None are found if their metadata is too large to be read.

        Raises:
            ApiServerError: they cannot be listed.
        """
        fields = ["spec.nodeName=", *([f"metadata.name={subject.name}"] if subject.name else [])]
        query: dict[str, str | int] = {"fieldSelector": ",".join(fields), "limit": _MOST_PODS}
        if subject.labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in sorted(subject.labels))
        await self._pace()
        path = f"/api/v1/namespaces/{subject.namespace}/pods"
        try:
            content = await server.get(path, query, METADATA_LIST, most_bytes=_MOST_BYTES)
        except TooLargeError:
            return Pods([], complete=False)
        items = content.get("items")
        created = [(_created_at(pod), pod) for pod in items if isinstance(pod, dict)] if isinstance(items, list) else []
        fitting = [
            (created_at, _reference(pod, subject.namespace))
            for created_at, pod in created
            if created_at >= since - _CLOSE_SECONDS and _is_of(pod, subject)
        ]
        return Pods([pod for _, pod in sorted(fitting)], not field(content, "metadata", "continue"))

    async def with_owner(self, server: ApiServer, owner: ObjectReference) -> tuple[ObjectReference, ...]:
        """Return `owner` and, for a ReplicaSet, the object that controls it: users look at the Deployment.

        Raises:
            ApiServerError: the ReplicaSet cannot be read, though it may exist.
        """
        if (owner.api_version, owner.kind) != ("apps/v1", "ReplicaSet"):
            return (owner,)
        controller = self._controllers.get(owner)
        if controller is None:
            controller = await self._controller(server, owner)
            if controller is None:
                return (owner,)
            self._controllers.put(owner, controller, _CONTROLLER_BYTES)
        return owner, controller

    async def _controller(self, server: ApiServer, replica_set: ObjectReference) -> ObjectReference | None:
        path = f"/apis/apps/v1/namespaces/{replica_set.namespace}/replicasets/{replica_set.name}"
        await self._pace()
        try:
            content = await server.get(path, {}, _METADATA, most_bytes=_MOST_BYTES)
        except TooLargeError:
            return None
        except ApiServerError as error:
            if error.code in NOT_READABLE:
                return None
            raise
        metadata = content.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("uid") != replica_set.uid:
            return None
        return controller_of(metadata, replica_set.namespace)


def _is_of(pod: JsonObject, subject: Subject) -> bool:
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp") or controller_of(metadata, subject.namespace) != subject.controller:
        return False
    return bool(subject.controller) or (metadata.get("generateName") or "") == subject.generate_name


def _reference(pod: JsonObject, namespace: str) -> ObjectReference:
    metadata = pod["metadata"]
    return ObjectReference("v1", "Pod", namespace, str(metadata.get("name")), str(metadata.get("uid")))


def _created_at(pod: dict[str, Any]) -> float:
    return datetime.fromisoformat(str(field(pod, "metadata", "creationTimestamp"))).timestamp()
