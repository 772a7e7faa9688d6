"""Evict held pods through the Eviction API, or dry-run this. Write Events and audit records."""

import asyncio
import signal
import socket
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from placement_reclaim.choice import Limits, PolicyOf, opted_out
from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.fresh import Fresh
from placement_reclaim.held import PARTIAL_GANG, Held
from placement_reclaim.owners import Owner
from placement_reclaim.report import rows_of_pods
from webhook.audit.record import AuditRecord, Outcome, PolicyName
from webhook.audit.record import Owner as AuditOwner
from webhook.audit.writer import AuditWriter
from webhook.cli.output.terminal import echo
from webhook.cluster.batch import fields
from webhook.placement.packing.held_cards import IMAGE_PULL
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

    A row must have been held for at least `least_seconds` when its first pod is evicted. `now` returns the time in Unix
    seconds.
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
            if not reason:
                if not is_first:
                    await self._pause(stop)
                is_first = False
            if stop.is_set():
                return
            async for result in self._results(server, held, reason, stop):
                if audit is not None:
                    audit.write(self._record(result, user))
                yield result

    async def _pause(self, stop: asyncio.Event) -> None:
        if self.is_confirmed:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self.limits.pause_seconds)

    async def _results(
        self, server: ApiServer, held: Held, reason: str, stop: asyncio.Event
    ) -> AsyncGenerator[Result, None]:
        """Evict all pods of `held`, or none if there is a `reason` or one is refused, so that no gang is split."""
        fresh = Fresh(self.objects, self.gang_of)
        if not reason:
            fresh = await fresh.all_again(server, held.namespace, is_gang=held.reason == PARTIAL_GANG)
            reason = self._changed(fresh, held)
        settled = _bypassed(held, held.pods, reason) if reason else await self._ask(server, held, fresh)
        for each in settled:
            yield each
        if not settled:
            async for each in self._evict_pods(server, held, fresh, stop):
                yield each

    async def _ask(self, server: ApiServer, held: Held, fresh: Fresh) -> Sequence[Result]:
        """Return the results of a dry run, or none if the pods are to be evicted.

        If one pod is refused, the others are left alone.
        """
        if self.is_confirmed and held.reason != PARTIAL_GANG:
            return ()
        pods = [fresh.objects.pods[full_name(pod)] for pod in held.pods]
        asked = [await self._evict(server, held, pod, is_dry=True) for pod in pods]
        refused = next((each for each in asked if each.outcome != "Evicted"), None)
        if refused is None:
            return () if self.is_confirmed else asked
        left = _bypassed(held, pods, _refused(refused.pod))
        return [other if each.outcome == "Evicted" else each for each, other in zip(asked, left, strict=True)]

    async def _evict_pods(
        self, server: ApiServer, held: Held, fresh: Fresh, stop: asyncio.Event
    ) -> AsyncGenerator[Result, None]:
        """Evict the pods of `held`, unless the first one is refused. Only a confirmed run comes here."""
        for number, pod in enumerate(held.pods):
            if number:
                await self._pause(stop)
                if stop.is_set():
                    return
                fresh = await fresh.pods_again(server, held.namespace)
            result = await self._evict_now(server, held, pod, fresh)
            yield result
            if not number and result.outcome == "Denied":
                for each in _bypassed(held, held.pods[1:], _refused(pod)):
                    yield each
                return

    async def _evict_now(self, server: ApiServer, held: Held, pod: Raw, fresh: Fresh) -> Result:
        """Evict `pod` if it still runs. Whether its gang is held is not asked: its pods end when one of them does."""
        now = fresh.objects.pods.get(full_name(pod), {})
        if _uid(now) != _uid(pod) or fields.text(now, "metadata", "deletionTimestamp"):
            return Result(held, pod, "Bypassed", "it is gone, or Terminating")
        if reason := self._opted_out(fresh, held.namespace, [now]):
            return Result(held, pod, "Bypassed", reason)
        return await self._evict(server, held, now, is_dry=False)

    def _opted_out(self, fresh: Fresh, namespace: str, pods: Iterable[Raw]) -> str:
        return opted_out(pods, namespace, fresh.gang_of.snapshot, self.policy_of(namespace))

    def _changed(self, fresh: Fresh, held: Held) -> str:
        """Return why the row `held` cannot be evicted any more, or ""."""
        pods = [pod for each in held.pods if (pod := fresh.objects.pods.get(full_name(each)))]
        if reason := self._opted_out(fresh, held.namespace, pods):
            return reason
        now, uids = self.now(), set(map(_uid, held.pods))
        for each in rows_of_pods(fresh.objects, fresh.gang_of, now):
            if each.reason == held.reason and uids == set(map(_uid, each.pods)):
                # ErrImagePull of a pull that failed before comes between two ImagePullBackOff, with the same begin.
                has_failed = held.reason == IMAGE_PULL and each.since.seconds == held.since.seconds
                is_old = now - each.since.seconds >= self.least_seconds
                return "" if is_old and (each.since.is_known or has_failed) else "it has changed meanwhile"
        return "its gang has changed, or is gone" if len(uids) > 1 else "it is gone, or not held any more"

    async def _evict(self, server: ApiServer, held: Held, pod: Raw, *, is_dry: bool) -> Result:
        """Evict `pod`, as it was read last."""
        namespace, name = full_name(pod)
        options: dict[str, Any] = {"preconditions": {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}}
        query = dict(_QUERY)
        if is_dry:
            options["dryRun"], query["dryRun"] = ["All"], "All"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        try:
            await server.create(path, {**eviction, "deleteOptions": options}, query)
        except ApiServerError as error:
            if error.code not in _NO_ANSWER:
                return Result(held, pod, "Denied", str(error))
            return Result(held, pod, "Error", str(error) if is_dry else f"it may be evicted: {error}")
        if not is_dry:
            await _write_event(server, held, pod)
        return Result(held, pod, "Evicted")

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


def _bypassed(held: Held, pods: Sequence[Raw], reason: str) -> Sequence[Result]:
    return [Result(held, pod, "Bypassed", reason) for pod in pods]


def _refused(pod: Raw) -> str:
    return f"pod {full_name(pod)[1]} of its gang is refused"


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
