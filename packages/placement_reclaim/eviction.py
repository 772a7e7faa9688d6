"""Evict held pods through the Eviction API, or dry-run this. Write Events and audit records."""

import asyncio
import signal
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from placement_reclaim.choice import Limits, PolicyOf, forbidden, opted_out
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import PARTIAL_GANG, Held, Owner
from placement_reclaim.report import rows_of_pods
from webhook.audit.record import AuditRecord, Outcome, PolicyName
from webhook.audit.record import Owner as AuditOwner
from webhook.audit.writer import AuditWriter
from webhook.cli.output.terminal import echo
from webhook.cluster.batch import fields
from webhook.cluster.cache.resources import BATCH_RESOURCES, REQUIRED_RESOURCES, Resource
from webhook.cluster.cluster_file import occupies_node, snapshot_from_documents
from webhook.documents.documents import Document, JsonObject
from webhook.placement.packing.held_cards import IMAGE_PULL
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_READABLE, ApiServer
from webhook.watch.pages import list_pages

KIND = "reclaim"
"""The kind of the audit records."""
_COMPONENT = "placement-webhook-reclaim"
_QUERY = {"fieldManager": _COMPONENT}
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
# No response, or that of a proxy or the API server to a request that it may go on with.
_NO_ANSWER = (0, 502, 504)
_NAMESPACES, _NODES, _PODS = REQUIRED_RESOURCES
_POD_GROUPS = [each for each in BATCH_RESOURCES if each.kind == "PodGroup"]
_PAGE_SIZE = 500


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

    `now` returns the time in Unix seconds. Ctrl-C sets `stop`, and the run ends after the current eviction.
    """

    server: ApiServer
    objects: Objects
    policy_of: PolicyOf
    limits: Limits
    is_confirmed: bool = False
    now: Callable[[], float] = time.time
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, chosen: Sequence[tuple[Held, str]], audit: AuditWriter | None) -> AsyncGenerator[Result, None]:
        """Evict the pods of `chosen`, and yield the result for each pod after it was written to `audit`.

        Raises:
            ApiServerError: the pods cannot be read again.
        """
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.stop.set)
        review = await self.server.create(_REVIEWS, _REVIEW, {})
        is_first = True
        for held, reason in chosen:
            if not reason and not is_first:
                await self._pause()
            is_first = is_first and bool(reason)
            if self.stop.is_set():
                return
            async for result in self._results(held, reason):
                if audit is not None:
                    audit.write(self._record(result, fields.text(review, "status", "userInfo", "username")))
                yield result

    async def _pause(self) -> None:
        if self.is_confirmed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), self.limits.pause_seconds)

    async def _results(self, held: Held, reason: str) -> AsyncGenerator[Result, None]:
        """Evict all pods of `held`, or none if there is a `reason` or one is refused, so that no gang is split."""
        objects = self.objects if reason else await _read_again(self.server, self.objects, held)
        if reason := reason or self._changed(objects, held):
            for pod in held.pods:
                yield Result(held, pod, "Bypassed", reason)
            return
        pods = [objects.pods[full_name(pod)] for pod in held.pods]
        settled = await self._ask(held, pods)
        for result in settled:
            yield result
        for number, pod in enumerate(() if settled else pods):
            if number:
                await self._pause()
                if self.stop.is_set():
                    return
            result = await (self._evict_later(held, pod) if number else self._evict(held, pod))
            yield result
            if not number and result.outcome == "Denied":
                for other in pods[1:]:
                    yield _left_alone(held, other, result)
                return

    async def _ask(self, held: Held, pods: Sequence[Raw]) -> Sequence[Result]:
        """Return the results of a dry run, or none if the pods are to be evicted.

        If one pod is refused, the others are left alone.
        """
        if self.is_confirmed and held.reason != PARTIAL_GANG:
            return ()
        asked = [await self._evict(held, pod, is_dry=True) for pod in pods]
        refused = next((each for each in asked if each.outcome != "Evicted"), None)
        if refused is None:
            return () if self.is_confirmed else asked
        return [_left_alone(held, each.pod, refused) if each.outcome == "Evicted" else each for each in asked]

    async def _evict_later(self, held: Held, pod: Raw) -> Result:
        """Evict a later pod of a gang if it still runs. The gang may have ended: its pods end when one of them does."""
        namespace, name = full_name(pod)
        (now,) = await _listed(self.server, _PODS, namespace, name) or [{}]
        # The Eviction API deletes a pod that has ended, with its logs, even against its budget.
        if _uid(now) != _uid(pod) or not occupies_node(now) or fields.text(now, "metadata", "deletionTimestamp"):
            return Result(held, pod, "Bypassed", "it is gone, has ended, or is Terminating")
        read = await _listed(self.server, _NAMESPACES, name=namespace)
        snapshot = snapshot_from_documents([Document("the API server", each) for each in read])
        if reason := opted_out([now], namespace, snapshot, self.policy_of(namespace)):
            return Result(held, pod, "Bypassed", reason)
        return await self._evict(held, now)

    def _changed(self, objects: Objects, held: Held) -> str:
        """Return why the row `held` cannot be evicted any more, or ""."""
        now, uids = int(self.now()), set(map(_uid, held.pods))
        for each in rows_of_pods(objects, now):
            if each.reason == held.reason and uids == set(map(_uid, each.pods)):
                # ErrImagePull of a pull that failed before comes between two ImagePullBackOff, with the same begin.
                has_failed = held.reason == IMAGE_PULL and each.since.seconds == held.since.seconds
                current = replace(each, since=held.since) if has_failed else each
                if now - current.since.seconds < self.limits.least_seconds or not current.since.is_known:
                    return "it has changed meanwhile"
                return forbidden(current, self.policy_of(held.namespace), objects.snapshot)
        return "its gang has changed, or is gone" if len(uids) > 1 else "it is gone, or not held any more"

    async def _evict(self, held: Held, pod: Raw, *, is_dry: bool = False) -> Result:
        """Evict `pod`, as it was read last."""
        namespace, name = full_name(pod)
        dry_run: dict[str, Any] = {"dryRun": ["All"]} if is_dry else {}
        options = {"preconditions": {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}, **dry_run}
        metadata = {"name": name, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        try:
            await self.server.create(path, eviction, {**_QUERY, **({"dryRun": "All"} if is_dry else {})})
        except ApiServerError as error:
            if error.code not in _NO_ANSWER:
                return Result(held, pod, "Denied", str(error))
            return Result(held, pod, "Error", str(error) if is_dry else f"it may be evicted: {error}")
        if not is_dry:
            await _write_event(self.server, held, pod)
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
            owner=AuditOwner(owner.kind, owner.name) if owner.is_controller else None,
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


async def _read_again(server: ApiServer, objects: Objects, held: Held) -> Objects:
    """Return the current nodes, and pods and annotations of the namespace; for a gang its PodGroups, too.

    The claims are those of `objects`.
    """
    now = Objects(objects.policy, claims=objects.claims)
    for each in [*await _listed(server, _NODES), *await _listed(server, _PODS, held.namespace)]:
        now.take(each)
    read = await _listed(server, _NAMESPACES, name=held.namespace)
    for resource in _POD_GROUPS if held.reason == PARTIAL_GANG else ():
        try:
            read += await _listed(server, resource, held.namespace)
        except ApiServerError as error:
            if error.code not in NOT_READABLE:
                raise
    found = snapshot_from_documents([Document("the API server", each) for each in read])
    now.snapshot = replace(objects.snapshot, namespaces=found.namespaces)
    if held.reason == PARTIAL_GANG:
        groups = {"volcano": found.volcano, "kai": found.kai, "pod_groups": found.pod_groups}
        now.snapshot = replace(now.snapshot, **groups)  # type: ignore[arg-type] # fields of one type each
    return now


async def _listed(server: ApiServer, resource: Resource, namespace: str = "", name: str = "") -> list[JsonObject]:
    """Return the objects of a kind, of all namespaces and names or of this one."""
    found: list[JsonObject] = []
    head = {"apiVersion": resource.api_version, "kind": resource.kind}

    async def take(items: list[JsonObject], begins: bool) -> None:
        found[:] = [*([] if begins else found), *({**head, **each} for each in items)]

    root, _, plural = resource.path.rpartition("/")
    path = f"{root}/namespaces/{namespace}/{plural}" if namespace else resource.path
    await list_pages(server, path, {"fieldSelector": f"metadata.name={name}"} if name else {}, take, _PAGE_SIZE)
    return found


def _left_alone(held: Held, pod: Raw, refused: Result) -> Result:
    return Result(held, pod, "Bypassed", f"pod {full_name(refused.pod)[1]} of its gang is refused")


def _uid(pod: Raw) -> str:
    return fields.text(pod, "metadata", "uid")


def _why(held: Held) -> str:
    cards = ", ".join(f"{count} {resource}" for resource, count in held.cards.items())
    return f"{held.reason}: {cards}: {held.why}"


async def _write_event(server: ApiServer, held: Held, pod: Raw) -> None:
    """Write an Event about the evicted `pod`. An error of the API server is only printed."""
    namespace, name = full_name(pod)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": _uid(pod)},
        "type": "Warning",
        "reason": "Reclaimed",
        "message": f"evicted, because its cards are held and not used: {_why(held)}",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
    }
    try:
        await server.create(f"/api/v1/namespaces/{namespace}/events", event, _QUERY)
    except ApiServerError as error:
        echo(f"no Event on {namespace}/{name}: {error}", err=True)
