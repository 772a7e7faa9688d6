"""Evict held pods by the Eviction API, one after the other, or ask it on dry run."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from placement_reclaim.choice import Chosen, Limits, is_still_held
from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import Held
from placement_reclaim.report import rows_of_pods
from webhook.cluster.batch import fields
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer

COMPONENT = "placement-webhook-reclaim"
Result = Literal["evicted", "would be evicted", "refused", "left alone"]


class Evicted(NamedTuple):
    """What became of a pod of the row `held`, and the words of the API server if it refused."""

    held: Held
    pod: Raw
    result: Result
    detail: str = ""

    @property
    def name(self) -> str:
        """Return `namespace/name` of the pod."""
        return "/".join(full_name(self.pod))


@dataclass
class Evictions:
    """Evictions by `server`, one after the other, until `stop` is set; on dry run unless `is_confirmed`.

    `now` returns the time in Unix seconds. The first pod of a row must be held for at least `least_seconds`; evictions
    of a gang make what is left of it younger.
    """

    server: ApiServer
    objects: Objects
    gang_of: GangOf
    limits: Limits
    now: Callable[[], int]
    least_seconds: int
    stop: asyncio.Event
    is_confirmed: bool = False
    _is_first: bool = field(default=True, init=False)

    async def run(self, chosen: Iterable[Chosen]) -> AsyncGenerator[Evicted, None]:
        """Evict the pods of each row that may be evicted, and yield what becomes of each pod.

        Raises:
            ApiServerError: the pods cannot be read again.
        """
        for held, reason in chosen:
            for number, pod in enumerate(held.pods):
                if reason:
                    yield Evicted(held, pod, "left alone", reason)
                    continue
                if not self._is_first and self.is_confirmed:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.stop.wait(), self.limits.pause_seconds)
                if self.stop.is_set():
                    return
                yield await self._evict(held, pod, 0 if number else self.least_seconds)

    async def _evict(self, held: Held, pod: Raw, least_seconds: int) -> Evicted:
        """Evict `pod` if it is still the same pod, and still held for the same reason."""
        namespace, name = full_name(pod)
        fresh, now = await self._read_again(namespace), self.now()
        rows = (each for each in rows_of_pods(fresh, self.gang_of, now) if now - each.since.seconds >= least_seconds)
        if not is_still_held(held, pod, rows):
            return Evicted(held, pod, "left alone", "it is gone, or not held any more")
        self._is_first = False
        current = fresh.pods[namespace, name]
        metadata = current["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options: dict[str, Any] = {"preconditions": preconditions}
        dry_run = {} if self.is_confirmed else {"dryRun": "All"}
        if dry_run:
            options["dryRun"] = ["All"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        try:
            await self.server.create(path, eviction, {"fieldManager": COMPONENT, **dry_run})
        except ApiServerError as error:
            return Evicted(held, pod, "refused", str(error))
        return Evicted(held, pod, "evicted" if self.is_confirmed else "would be evicted")

    async def _read_again(self, namespace: str) -> Objects:
        """Return the pods of `namespace`, and its nodes as they were read."""
        fresh = Objects(self.objects.accelerators, nodes=self.objects.nodes, claims=self.objects.claims)
        listed = await self.server.get(f"/api/v1/namespaces/{namespace}/pods", {})
        for each in listed.get("items") or ():
            fresh.take({"apiVersion": "v1", "kind": "Pod", **each})
        return fresh


async def write_event(server: ApiServer, evicted: Evicted, note: str) -> None:
    """Write an Event on the evicted pod.

    Raises:
        ApiServerError: the API server did not accept it.
    """
    namespace, name = full_name(evicted.pod)
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
            "uid": fields.text(evicted.pod, "metadata", "uid"),
        },
        "type": "Warning",
        "reason": "Reclaimed",
        "message": note,
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    }
    await server.create(f"/api/v1/namespaces/{namespace}/events", event, {"fieldManager": COMPONENT})


async def user_of(server: ApiServer) -> str:
    """Return the name by which the API server knows this client, or an empty string if it does not say."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer: Mapping[str, Any] = await server.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review, {})
    except ApiServerError:
        return ""
    return fields.text(answer, "status", "userInfo", "username")
