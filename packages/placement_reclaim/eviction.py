"""Evict held pods through the Eviction API, or dry-run this. Write Events and audit records."""

import asyncio
import signal
import socket
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import click

from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import Held
from placement_reclaim.report import Limits, PolicyOf, choose, forbidden, opted_out, rows_of_pods
from webhook.audit.record import NO_ADMISSION, AuditRecord, Outcome, Owner, PolicyName
from webhook.audit.writer import AuditWriter
from webhook.cli.inputs.live import ask, list_resource
from webhook.cli.inputs.policies import NamespacePolicies
from webhook.cli.inputs.session import Session
from webhook.cli.output.terminal import echo, echo_json
from webhook.cluster.batch import fields
from webhook.cluster.cache.resources import BATCH_RESOURCES, REQUIRED_RESOURCES, Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document, JsonObject
from webhook.events.backlog import PendingReport
from webhook.events.report import Report
from webhook.events.subject import ObjectReference
from webhook.events.writer import write
from webhook.kube.pod.top_controller import top_controller
from webhook.placement.packing.held_cards import IMAGE_PULL
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer

_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
# No response, or that of a proxy or the API server to a request that it may go on with.
_NO_ANSWER = (0, 502, 504)
_SHOWN = {"Denied": "refused", "Error": "no answer", "Bypassed": "left alone"}
_NAMESPACES, _NODES, _PODS = REQUIRED_RESOURCES
_POD_GROUPS = [each for each in BATCH_RESOURCES if each.kind == "PodGroup"]


def evict(
    session: Session, objects: Objects, rows: Sequence[Held], limits: Limits, audit: str | None, is_confirmed: bool
) -> bool:
    """Evict the pods of `rows`, or only ask, print each result and a summary, and return whether Ctrl-C has ended it.

    Raises:
        click.ClickException: the API server does not answer another request than an eviction.
    """
    policy_of, counts = NamespacePolicies(session.rules, objects.snapshot).of_namespace, Counter[str]()
    chosen = choose(rows, policy_of, objects.snapshot, limits)

    async def run(server: ApiServer) -> bool:
        evictions = Evictions(server, objects, policy_of, limits, is_confirmed)
        async for result in evictions.run(chosen, writer):
            counts[_print(result, is_json=session.is_json, is_confirmed=is_confirmed)] += 1
        return evictions.stop.is_set()

    is_interrupted = False
    with AuditWriter(audit) if audit else nullcontext() as writer:
        try:
            is_interrupted = ask(session.source, run)
        except ApiServerError as error:
            raise click.ClickException(str(error)) from error
        finally:
            none = "no pod has a result" if rows else "no pod is held"
            summary = ", ".join(f"{count} {result}" for result, count in counts.items()) or none
            end = "" if is_confirmed else "; nothing is evicted without --confirm"
            echo(f"{'interrupted: ' if is_interrupted else ''}{summary}{end}", err=session.is_json)
    return is_interrupted


class Result(NamedTuple):
    """The outcome for `pod` of the row `held`, with the reason. Error means that it may be evicted."""

    held: Held
    pod: Raw
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evictions:
    """Evictions of pods of `objects`, on dry run unless `is_confirmed`. Ctrl-C sets `stop`. `now` is Unix time."""

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
        has_begun = False
        for held, reason in chosen:
            if not await self._goes_on(pauses=has_begun and not reason):
                return
            has_begun = has_begun or not reason
            async for result in self._results(held, reason):
                if audit is not None:
                    audit.write(self._record(result, fields.text(review, "status", "userInfo", "username")))
                yield result

    async def _goes_on(self, *, pauses: bool) -> bool:
        """Wait between two evictions if `pauses`, and return whether Ctrl-C has not ended the run."""
        if pauses and self.is_confirmed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), self.limits.pause_seconds)
        return not self.stop.is_set()

    async def _results(self, held: Held, reason: str) -> AsyncGenerator[Result, None]:
        """Ask about all pods of `held` on dry run, then evict them, unless there is a `reason` or one is refused."""
        objects = self.objects if reason else await self._read_again(held.namespace)
        if reason := reason or self._changed(objects, held):
            asked = [Result(held, pod, "Bypassed", reason) for pod in held.pods]
        else:
            asked = [await self._evict(held, objects.pods[full_name(pod)], is_dry=True) for pod in held.pods]
        refused = next((each for each in asked if each.outcome != "Evicted"), None)
        for number, result in enumerate(asked):
            if refused and result.outcome == "Evicted":
                detail = f"pod {full_name(refused.pod)[1]} of its gang is not evicted"
                yield result._replace(outcome="Bypassed", detail=detail)
            elif refused or not self.is_confirmed:
                yield result
            elif await self._goes_on(pauses=number > 0):
                done = await (self._evict_of_gang(result) if len(asked) > 1 else self._evict(held, result.pod))
                if not number and done.outcome in ("Denied", "Bypassed"):
                    refused = done
                yield done

    async def _evict_of_gang(self, asked: Result) -> Result:
        """Evict a pod of a gang if both still run, the gang in part: its other pods may have started or ended."""
        held, pod, uids = asked.held, asked.pod, set(map(_uid, asked.held.pods))
        objects = await self._read_again(held.namespace)
        # An evicted pod that exits with 0 has not completed the gang.
        objects.ended = {key: each for key, each in objects.ended.items() if _uid(each) not in uids}
        now, rows = objects.pods.get(full_name(pod), {}), rows_of_pods(objects, int(self.now()))
        # The Eviction API deletes a pod that has ended, with its logs, even against its budget.
        if _uid(now) != _uid(pod) or fields.text(now, "metadata", "deletionTimestamp"):
            reason = "it is gone, has ended, or is Terminating"
        elif not any(each.reason == held.reason and now in each.pods for each in rows):
            reason = "its gang runs, or has ended"
        else:
            reason = opted_out([now], held.namespace, objects.snapshot, self.policy_of(held.namespace))
        return asked._replace(outcome="Bypassed", detail=reason) if reason else await self._evict(held, now)

    async def _read_again(self, namespace: str) -> Objects:
        """Return the nodes, and the pods, PodGroups and annotations of `namespace`, with the claims of `objects`."""
        named = replace(_NAMESPACES, field_selector=f"metadata.name={namespace}")
        groups = (replace(each, namespace=namespace) for each in _POD_GROUPS)
        found: dict[Resource, list[JsonObject]] = {}

        def on_page(resource: Resource, items: list[JsonObject], begins: bool) -> None:
            found[resource] = items if begins else [*found[resource], *items]

        # The list of nodes is the longest. A pod is bound long after its node was made, so the pods can come last.
        for each in (_NODES, *groups, named, replace(_PODS, field_selector="", namespace=namespace)):
            await list_resource(self.server, each, on_page)
        contents = [content for items in found.values() for content in items]
        # An empty list states that there are none, and not that they are not known.
        empty = [
            {"apiVersion": each.api_version, "kind": f"{each.kind}List"} for each, items in found.items() if not items
        ]
        others = [each for each in (*contents, *empty) if each["kind"] != "Pod"]
        snapshot = snapshot_from_documents(Document("the API server", each) for each in others)
        now = Objects(self.objects.policy, snapshot, claims=self.objects.claims)
        for content in contents:
            now.take(content)
        return now

    def _changed(self, objects: Objects, held: Held) -> str:
        """Return why the row `held` cannot be evicted any more, or ""."""
        now, uids = int(self.now()), set(map(_uid, held.pods))
        for each in rows_of_pods(objects, now):
            if each.reason == held.reason and uids == set(map(_uid, each.pods)):
                # ErrImagePull of a pull that failed before comes between two ImagePullBackOff, with the same begin.
                has_failed = held.reason == IMAGE_PULL and each.since.seconds == held.since.seconds
                current = replace(each, since=held.since) if has_failed else each
                if current.since.age(now) < self.limits.least_seconds or not current.since.is_known:
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
            await self.server.create(path, eviction, {"dryRun": "All"} if is_dry else {})
        except ApiServerError as error:
            if error.code not in _NO_ANSWER:
                return Result(held, pod, "Denied", str(error))
            return Result(held, pod, "Error", str(error) if is_dry else f"it may be evicted: {error}")
        if not is_dry:
            await self._write_event(held, pod)
        return Result(held, pod, "Evicted")

    async def _write_event(self, held: Held, pod: Raw) -> None:
        """Write an Event about the evicted `pod`. An error of the API server is only printed."""
        target, now = ObjectReference("v1", "Pod", *full_name(pod), _uid(pod)), self.now()
        report = Report("Reclaimed", f"evicted, because its cards are held and not used: {_why(held)}")
        pending = PendingReport(report, target, now, now, now)
        try:
            await write(self.server, pending, target, 1, socket.gethostname(), "Evict")
        except ApiServerError as error:
            echo(f"no Event on {'/'.join(full_name(pod))}: {error}", err=True)

    def _record(self, result: Result, user: str) -> AuditRecord:
        namespace, name = full_name(result.pod)
        policy, owner = self.policy_of(namespace), top_controller(result.pod)
        return replace(
            NO_ADMISSION,
            time=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            decision=uuid.uuid4().hex,
            uid=_uid(result.pod),
            dry_run=not self.is_confirmed,
            operation="EVICT",
            namespace=namespace,
            name=name,
            owner=Owner(owner.kind, owner.name) if owner else None,
            user=user,
            policy=PolicyName(policy.name, policy.revision),
            outcome=result.outcome,
            warnings=(_why(result.held),),
            error=result.detail or None,
            replica=socket.gethostname(),
            kind="reclaim",
        )


def _print(result: Result, *, is_json: bool, is_confirmed: bool) -> str:
    """Print a result, and return its outcome as text."""
    held, name = result.held, "/".join(full_name(result.pod))
    shown = _SHOWN.get(result.outcome, "evicted" if is_confirmed else "would be evicted")
    returns = held.returns and result.outcome == "Evicted"
    if is_json:
        line = {"pod": name, "class": held.reason, "result": shown, "message": result.detail or None}
        echo_json({**line, "dryRun": not is_confirmed, "returns": returns})
    else:
        end = "; returns at once: a controller makes it again" if returns else ""
        echo(f"{shown}: {name}: {result.detail or held.reason}{end}")
    return shown


def _uid(pod: Raw) -> str:
    return fields.text(pod, "metadata", "uid")


def _why(held: Held) -> str:
    cards = ", ".join(f"{count} {resource}" for resource, count in held.cards.items())
    return f"{held.reason}: {cards}: {held.why}"
