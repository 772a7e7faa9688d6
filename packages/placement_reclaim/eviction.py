"""Evict held pods through the Eviction API, or dry-run this. Write Events and audit records."""

import asyncio
import signal
import socket
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from placement_reclaim.choice import Limits, PolicyOf
from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import Held
from placement_reclaim.owners import Owner
from placement_reclaim.report import rows_of_pods
from webhook.audit.record import AuditRecord, Outcome, PolicyName
from webhook.audit.record import Owner as AuditOwner
from webhook.audit.writer import AuditWriter
from webhook.cli.output.terminal import echo
from webhook.cluster.batch import fields
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer

KIND = "reclaim"
"""The kind of the audit records."""
_COMPONENT = "placement-webhook-reclaim"
_QUERY = {"fieldManager": _COMPONENT}
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
# No response, or that of a proxy or the API server to a request that it may go on with.
_NO_ANSWER = (0, 502, 504)
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class Result(NamedTuple):
    """The outcome for `pod` of the row `held`, with the reason.

    It is Evicted, Denied by the API server, Bypassed, or Error if there is no answer, so that the pod may be evicted.
    """

    held: Held
    pod: Raw
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evictions:
    """Evictions of pods of `objects`. They are a dry run unless `is_confirmed` is true.

    The first pod of a row must have been held for at least `least_seconds` when it is evicted. This does not apply to
    further pods, because each eviction of a gang restarts the time of the rest. `now` returns the time in Unix seconds.
    """

    objects: Objects
    gang_of: GangOf
    policy_of: PolicyOf
    limits: Limits
    least_seconds: int
    now: Callable[[], int]
    is_confirmed: bool = False

    async def run(
        self, server: ApiServer, chosen: Sequence[tuple[Held, str]], audit: AuditWriter | None, stop: asyncio.Event
    ) -> AsyncGenerator[Result, None]:
        """Evict the pods of `chosen`, and yield the result for each pod after it was written to `audit`.

        Ctrl-C sets `stop`, and the run ends after the current eviction.

        Raises:
            ApiServerError: the pods cannot be read again.
        """
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
        user = fields.text(await server.create(_REVIEWS, _REVIEW, {}), "status", "userInfo", "username")
        is_first = True
        for held, reason in chosen:
            for number, pod in enumerate(held.pods):
                result = Result(held, pod, "Bypassed", reason)
                if not reason:
                    if self.is_confirmed and not is_first:
                        with suppress(TimeoutError):
                            await asyncio.wait_for(stop.wait(), self.limits.pause_seconds)
                    if stop.is_set():
                        return
                    is_first = False
                    result = await self._evict(server, held, pod, 0 if number else self.least_seconds)
                if audit is not None:
                    audit.write(self._record(result, user))
                yield result

    async def _evict(self, server: ApiServer, held: Held, pod: Raw, least_seconds: int) -> Result:
        """Evict `pod` if it still exists and still holds cards for the same reason."""
        namespace, name = full_name(pod)
        fresh, now, uid = await self._read_again(server, namespace), self.now(), _uid(pod)
        rows = (each for each in rows_of_pods(fresh, self.gang_of, now) if now - each.since.seconds >= least_seconds)
        if not any(each.reason == held.reason and uid in map(_uid, each.pods) for each in rows):
            return Result(held, pod, "Bypassed", "it is gone, or not held any more")
        metadata = fresh.pods[namespace, name]["metadata"]
        options: dict[str, Any] = {"preconditions": {key: metadata[key] for key in ("uid", "resourceVersion")}}
        query = dict(_QUERY)
        if not self.is_confirmed:
            options["dryRun"], query["dryRun"] = ["All"], "All"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        try:
            await server.create(path, {**eviction, "deleteOptions": options}, query)
        except ApiServerError as error:
            if error.code not in _NO_ANSWER:
                return Result(held, pod, "Denied", str(error))
            return Result(held, pod, "Error", f"it may be evicted: {error}" if self.is_confirmed else str(error))
        if self.is_confirmed:
            await _write_event(server, held, pod)
        return Result(held, pod, "Evicted")

    async def _read_again(self, server: ApiServer, namespace: str) -> Objects:
        """Return the current pods of `namespace`, with the nodes and claims that were read at first."""
        fresh = Objects(self.objects.accelerators, nodes=self.objects.nodes, claims=self.objects.claims)
        listed = await server.get(f"/api/v1/namespaces/{namespace}/pods", {})
        for each in listed.get("items") or ():
            fresh.take({"apiVersion": "v1", "kind": "Pod", **each})
        return fresh

    def _record(self, result: Result, user: str) -> AuditRecord:
        namespace, name = full_name(result.pod)
        policy, owner = self.policy_of(namespace), Owner.of(result.pod)
        return AuditRecord(
            time=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            decision=uuid.uuid4().hex,
            uid=_uid(result.pod),
            dry_run=not self.is_confirmed,
            operation="EVICT",
            namespace=namespace,
            name=name,
            owner=AuditOwner(owner.kind, owner.name) if owner.returns else None,
            user=user,
            workload_type=None,
            policy=PolicyName(policy.name, policy.revision),
            outcome=result.outcome,
            rules=(),
            patch=(),
            warnings=(_why(result.held),),
            placement=None,
            error=result.detail or None,
            duration_ms=0.0,
            replica=socket.gethostname(),
            kind=KIND,
        )


def _uid(pod: Raw) -> str:
    return fields.text(pod, "metadata", "uid")


def _why(held: Held) -> str:
    cards = ", ".join(f"{count} {resource}" for resource, count in held.cards.items())
    return f"{held.reason}: {cards}: {held.why}"


async def _write_event(server: ApiServer, held: Held, pod: Raw) -> None:
    """Write an Event about the evicted `pod`. An error of the API server is only printed."""
    namespace, name = full_name(pod)
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    subject = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": _uid(pod)}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
        "involvedObject": subject,
        "type": "Warning",
        "reason": "Reclaimed",
        "message": f"evicted, because its cards are held and not used: {_why(held)}",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
    }
    try:
        await server.create(f"/api/v1/namespaces/{namespace}/events", event, _QUERY)
    except ApiServerError as error:
        echo(f"no Event on {namespace}/{name}: {error}", err=True)
