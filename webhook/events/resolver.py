"""Turns observations of pods into Events on objects.

Each of the first pods of an owner gets an Event of its own; further ones are counted in one Event on the owner, so that
a thousand replicas give a handful of Events. A missing scheduler is reported on the owner for the first pods, too.
"""

from typing import NamedTuple

from webhook.events.event import Observation, PendingEvent
from webhook.events.lookup import Lookup
from webhook.events.subject import ObjectReference
from webhook.events.token_bucket import TokenBucket
from webhook.runtime.byte_cache import ByteCache
from webhook.watch.api_server import ApiServer

PODS_OF_OWNER = 5
"""The number of pods of one owner that get an Event of their own, for each reason within ten minutes."""

_ALLOWANCE_SECONDS = 120.0
# The API server stores a pod after its other webhooks, which take up to 30 s.
_LOOKUP_PAUSES_SECONDS = (3.0, 10.0, 20.0)
_MEMORY_BYTES = 512 * 1024
_ENTRY_BYTES = 512


class Resolution(NamedTuple):
    """The Events of an observation; the pods that are not found yet, if they are looked up again; those left."""

    events: list[PendingEvent]
    again: Observation | None = None
    without_object: int = 0


class Resolver:
    """Finds the objects of observations by means of `lookup`."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._counted: ByteCache[tuple[str, str], bool] = ByteCache(_MEMORY_BYTES)
        self._allowances: ByteCache[tuple[str, str], TokenBucket] = ByteCache(_MEMORY_BYTES)

    async def resolve(self, server: ApiServer, observation: Observation, now: float) -> Resolution:
        """Resolve `observation` at `now` of the monotonic clock.

        Raises:
            ApiServerError: the objects cannot be read.
        """
        if not observation.report.is_on_pod:
            return Resolution(await self._on_owners(server, observation, observation.count, now))
        pods = await self._lookup.pods(server, observation.subject, observation.first_at)
        reason = observation.report.reason
        fresh = [pod for pod in pods.found if self._counted.get((pod.uid, reason)) is None][: observation.count]
        allowance = self._allowance(observation, now)
        own = fresh[: allowance.available(now)]
        others = len(fresh) - len(own) if pods.complete else observation.count - len(own)
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
        owners = await self._lookup.with_owner(server, controller)
        return [_event(observation, owner, count, now) for owner in owners]

    def _allowance(self, observation: Observation, now: float) -> TokenBucket:
        """Return the bucket of the pods that get an Event of their own."""
        key = observation.subject.identity, observation.report.reason
        bucket = self._allowances.get(key)
        if bucket is None:
            bucket = TokenBucket(PODS_OF_OWNER, _ALLOWANCE_SECONDS, now)
            self._allowances.put(key, bucket, _ENTRY_BYTES)
        return bucket

    def _again(self, observation: Observation, count: int, now: float) -> Observation | None:
        if observation.lookups >= len(_LOOKUP_PAUSES_SECONDS):
            return None
        observation.due_seconds = now + _LOOKUP_PAUSES_SECONDS[observation.lookups]
        observation.lookups += 1
        observation.count = count
        return observation


def _event(observation: Observation, target: ObjectReference, count: int, now: float) -> PendingEvent:
    return PendingEvent(
        target,
        observation.report,
        observation.subject.source,
        observation.first_at,
        observation.last_at,
        now,
        observation.expires_seconds,
        count,
    )
