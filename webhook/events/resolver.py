"""Turns observations of pods into Events on objects.

Each of the first pods of an owner gets an Event of its own; further ones are counted in one Event on the owner, so that
a thousand replicas give a handful of Events. A missing scheduler is reported on the owner for the first pods, too.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.events.backlog import Observation, PendingEvent
from webhook.events.subject import ObjectReference, Subject, controller_of
from webhook.events.token_bucket import TokenBuckets
from webhook.runtime.byte_cache import ByteCache
from webhook.watch.api_errors import ApiServerError, TooLargeError
from webhook.watch.api_server import METADATA_LIST, NOT_READABLE, ApiServer, JsonObject

PODS_OF_OWNER = 5
"""The number of pods of one owner that get an Event of their own, for each reason within ten minutes."""

_ALLOWANCE_SECONDS = 120.0
# The API server stores a pod after its other webhooks, which take up to 30 s.
_LOOKUP_PAUSES_SECONDS = (3.0, 10.0, 20.0)
_COUNTED_BYTES = 512 * 1024
_ENTRY_BYTES = 512
# Only metadata: a pod can have 1.5 MiB, and its spec is not needed.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MOST_PODS = 500
# 500 pods have about 1.5 MiB. A user can give each pod 256 KiB of annotations, and decoding blocks the event loop.
_MOST_BYTES = 2 * 1024 * 1024
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0
_CONTROLLERS_BYTES = 1024 * 1024
_CONTROLLER_BYTES = 2048


class Resolution(NamedTuple):
    """The Events of an observation; the pods that are not found yet, if they are looked up again; those left."""

    events: list[PendingEvent]
    again: Observation | None = None
    without_object: int = 0


class Resolver:
    """Finds the objects of observations: pods, and the owner of an owner. It calls `pace` before each request."""

    def __init__(self, pace: Callable[[], Awaitable[None]]) -> None:
        self._pace = pace
        self._controllers: ByteCache[ObjectReference, ObjectReference] = ByteCache(_CONTROLLERS_BYTES)
        self._counted: ByteCache[tuple[str, str], bool] = ByteCache(_COUNTED_BYTES)
        self._allowances = TokenBuckets(PODS_OF_OWNER, _ALLOWANCE_SECONDS)

    async def resolve(self, server: ApiServer, observation: Observation, now: float) -> Resolution:
        """Resolve `observation` at `now` of the monotonic clock.

        Raises:
            ApiServerError: the objects cannot be read.
        """
        if not observation.report.is_on_pod:
            return Resolution(await self._on_owners(server, observation, observation.count, now))
        pods, is_complete = await self._pods(server, observation.subject, observation.first_at)
        reason = observation.report.reason
        fresh = [pod for pod in pods if self._counted.get((pod.uid, reason)) is None][: observation.count]
        allowance = self._allowances.of(f"{observation.subject.identity}\0{reason}", now)
        own = fresh[: allowance.available(now)]
        others = len(fresh) - len(own) if is_complete else observation.count - len(own)
        on_owners = others + len(own) if observation.report.is_on_owner else others
        owners = await self._on_owners(server, observation, on_owners, now)
        allowance.take(now, len(own))
        for pod in fresh:
            self._counted.put((pod.uid, reason), True, _ENTRY_BYTES)
        left = observation.count - len(own) - others
        again = self._again(observation, left, now) if left else None
        unowned = others if not owners else 0
        return Resolution(
            [*(_event(observation, pod, 1, now) for pod in own), *owners], again, unowned + (0 if again else left)
        )

    async def _on_owners(
        self, server: ApiServer, observation: Observation, count: int, now: float
    ) -> list[PendingEvent]:
        controller = observation.subject.controller
        if not count or controller is None:
            return []
        owners = await self._with_owner(server, controller)
        return [_event(observation, owner, count, now) for owner in owners]

    def _again(self, observation: Observation, count: int, now: float) -> Observation | None:
        if observation.lookups >= len(_LOOKUP_PAUSES_SECONDS):
            return None
        observation.due_seconds = now + _LOOKUP_PAUSES_SECONDS[observation.lookups]
        observation.lookups += 1
        observation.count = count
        return observation

    async def _pods(self, server: ApiServer, subject: Subject, since: float) -> tuple[list[ObjectReference], bool]:
        """Return the pods of `subject` created after `since` (wall clock) without a node; true if these are all.

        The oldest come first. None are found if their metadata is too large to be read.
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
            return [], False
        items = content.get("items")
        created = [(_created_at(pod), pod) for pod in items if isinstance(pod, dict)] if isinstance(items, list) else []
        fitting = [
            (created_at, _reference(pod, subject.namespace))
            for created_at, pod in created
            if created_at >= since - _CLOSE_SECONDS and _is_of(pod, subject)
        ]
        return [pod for _, pod in sorted(fitting)], not field(content, "metadata", "continue")

    async def _with_owner(self, server: ApiServer, owner: ObjectReference) -> tuple[ObjectReference, ...]:
        """Return `owner` and, for a ReplicaSet, the object that controls it: users look at the Deployment."""
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


def _event(observation: Observation, target: ObjectReference, count: int, now: float) -> PendingEvent:
    seen, source = observation, observation.subject.source
    return PendingEvent(
        seen.report, seen.first_at, seen.last_at, now, seen.expires_seconds, target, source, count=count
    )


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
