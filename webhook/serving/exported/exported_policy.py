"""Keep the exported policy in the cluster equal to the policy in force. The leader of the replicas does it."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from certs.controller.loop import WritePacing
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission_policy import (
    EXPORT_OWNER,
    GROUP,
    PLURALS,
    ObjectId,
    changes,
    is_exported,
    mutating_version,
    path_of,
)
from webhook.kube.release import Release
from webhook.mutation.exported import Exported
from webhook.policy.policy_set import PolicySet
from webhook.runtime.metrics import Metrics
from webhook.serving.scheduling.worker import in_background
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import CONFLICT, NOT_FOUND, ApiServer, Connect
from webhook.watch.lease import LeaseOptions, lead
from webhook.watch.polling import read_release, read_webhook_configuration
from webhook.watch.reflector import Reflector
from webhook.watch.store import ObjectsByName, changed_within
from webhook.watch.timing import Timing

FIELD_MANAGER = "placement-webhook-export"
_RESYNC_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_MOST_LEFT_OUT = 20
# The API server repeats the expression that it rejects.
_LONGEST_ERROR = 2000
_CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_NOT_IN_STEP = "the exported policy is not in step with the policy in force"


Export = Callable[[PolicySet, Release, JsonObject | None], Exported]
"""Return the objects for a release; they apply by the selectors of a MutatingWebhookConfiguration, if it is known."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The Lease of the leader, the ClusterRole that owns the exported objects, and the webhook configuration.

    When the owner is deleted, the garbage collector of the cluster also deletes the objects. If the ClusterRole does
    not exist, the objects have no owner.
    """

    lease: LeaseOptions
    configuration: str = ""
    owner: str = EXPORT_OWNER
    resync_seconds: float = _RESYNC_SECONDS


class ExportedPolicy:
    """Exports the policies in force once they are known; `export` runs in another thread."""

    def __init__(
        self,
        connect: Connect,
        in_force: Callable[[], PolicySet],
        is_known: Callable[[], bool],
        export: Export,
        options: ExportOptions,
        metrics: Metrics,
        on_fault: Callable[[], None] = lambda: None,
    ) -> None:
        self._connect, self._in_force, self._is_known, self._export = connect, in_force, is_known, export
        self._options, self._metrics, self._on_fault = options, metrics, on_fault
        self._changed = asyncio.Event()
        self._failure = ""
        self._left_out: list[str] = []
        self._log = structlog.get_logger()

    def policy_changed(self, *_: object) -> None:
        """Compare the objects again, because other policies are in force."""
        self._changed.set()

    async def run(self) -> None:
        """Keep the objects up to date while this replica is the leader, until cancelled."""
        await lead(self._connect, self._options.lease, self._keep)

    async def _keep(self) -> None:
        self._metrics.exported_policy_in_step.set(0)
        try:
            while True:
                await self._guarded(self._follow)
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._metrics.exported_policy_in_step.set(math.nan)

    async def _follow(self) -> None:
        """Watch the objects and compare them, until the release of the cluster changes."""
        async with self._connect() as api:
            release = await read_release(api)
        stores = {each: ObjectsByName(self._changed) for each in _resources(release)}
        pacing = WritePacing()
        async with AsyncExitStack() as stack:
            for resource, store in stores.items():
                reflector = Reflector(resource, store, self._connect, Timing(), on_fault=self._on_fault)
                await stack.enter_async_context(in_background(reflector.run(), resource.plural))
            while True:
                self._changed.clear()
                await self._guarded(lambda: self._compare(release, stores, pacing))
                await asyncio.sleep(pacing.pause_seconds(time.monotonic()))
                await changed_within(
                    self._changed, self._options.resync_seconds if self._is_known() else _RETRY_SECONDS
                )
                async with self._connect() as api:
                    if (await read_release(api)).minor != release.minor:
                        return

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (ApiServerError, InvalidInput) as error:
            self._report(str(error))
        except Exception as error:
            self._on_fault()
            self._log.exception("internal error")
            self._report(f"internal error: {error!r}")

    async def _compare(self, release: Release, stores: dict[Resource, ObjectsByName], pacing: WritePacing) -> None:
        if not self._is_known() or any(each.by_name is None and not each.is_unknown for each in stores.values()):
            return
        async with self._connect() as api:
            configuration = await self._read_configuration(api)
        policies = self._in_force()
        wanted = await asyncio.to_thread(self._export, policies, release, configuration)
        self._note_left_out(wanted)
        unknown = {each.kind: each for each, store in stores.items() if store.is_unknown}
        stored = {
            ObjectId(resource.kind, name): {"apiVersion": resource.api_version, "kind": resource.kind, **content}
            for resource, store in stores.items()
            for name, content in (store.by_name or {}).items()
        }
        async with self._connect() as api:
            objects = await self._owned(api, [each for each in wanted.objects if each["kind"] not in unknown])
            names = {ObjectId.of(each) for each in objects}
            found = changes(objects, {key: each for key, each in stored.items() if key in names or is_exported(each)})
            failures = [_unread(unknown[each["kind"]]) for each in wanted.objects if each["kind"] in unknown]
            if found:
                pacing.note(time.monotonic())
            failures += [await self._attempt("written", each, _write(api, each, old)) for each, old in found.written]
            failures += [await self._attempt("removed", each, _remove(api, each)) for each in found.removed]
        identities = [each.identity for each in policies]
        self._report(next(filter(None, failures), ""), policies=identities, objects=len(objects))

    async def _attempt(self, done: str, content: JsonObject, request: Awaitable[object]) -> str:
        """Return the message if `request` fails, or "". Raise the error if the API server does not answer."""
        try:
            await request
        except ApiServerError as error:
            if error.code in (NOT_FOUND, CONFLICT):
                # Another client was faster. The watch reports its change, and then the object is compared again.
                return ""
            if not error.code:
                raise
            return str(error)[:_LONGEST_ERROR]
        self._log.info("the exported policy is changed", object=str(ObjectId.of(content)), result=done)
        return ""

    async def _read_configuration(self, api: ApiServer) -> JsonObject | None:
        if not self._options.configuration:
            return None
        try:
            return await read_webhook_configuration(api, self._options.configuration)
        except ApiServerError as error:
            if error.code != NOT_FOUND:
                raise
            return None

    def _note_left_out(self, wanted: Exported) -> None:
        left_out = [*map(str, (*wanted.left_out, *wanted.without_effect))]
        if left_out and left_out != self._left_out:
            log = self._log.warning if wanted.left_out else self._log.info
            log("parts of the policy are left to the webhook", left_out=left_out[:_MOST_LEFT_OUT])
        self._left_out = left_out

    async def _owned(self, api: ApiServer, objects: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the objects with their owner, if it exists."""
        if not objects:
            return []
        try:
            role = await api.get(f"{_CLUSTER_ROLES}/{self._options.owner}", {})
        except ApiServerError as error:
            if error.code != NOT_FOUND:
                raise
            return list(objects)
        owner = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": self._options.owner,
            "uid": role["metadata"]["uid"],
        }
        return [{**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in objects]

    def _report(self, failure: str, **facts: object) -> None:
        self._metrics.exported_policy_in_step.set(0 if failure else 1)
        if failure and failure != self._failure:
            self._log.error(_NOT_IN_STEP, error=failure, **facts)
        elif self._failure and not failure:
            self._log.info("the exported policy is in step with the policy in force", **facts)
        self._failure = failure


def _resources(release: Release) -> list[Resource]:
    version = f"{GROUP}/{mutating_version(release.minor)}"
    return [Resource(kind, version, plural) for kind, plural in PLURALS.items()]


def _unread(resource: Resource) -> str:
    return (
        f"{resource.plural} of {resource.api_version} cannot be listed: the API server must serve them (v1 since 1.36; "
        "v1beta1 of 1.34 and 1.35 needs its feature gate and --runtime-config), and the service account must have the "
        "rights of deploy/overlays/exported"
    )


async def _write(api: ApiServer, content: JsonObject, before: JsonObject | None) -> None:
    """Create the object, or replace the differing parts of the stored object `before`, unless it has changed since.

    Server-side apply is used to create an object, so that a role can limit the permission to some names. It is not used
    for changes, because it would keep fields that another client has added.
    """
    if before is None:
        await api.apply(path_of(content), content, {"fieldManager": FIELD_MANAGER})
        return
    stored, metadata = before["metadata"], content["metadata"]
    merged = {key: {**(stored.get(key) or {}), **(metadata.get(key) or {})} for key in ("labels", "annotations")}
    if "ownerReferences" in metadata:
        merged["ownerReferences"] = metadata["ownerReferences"]
    patch: list[JsonObject] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": stored["resourceVersion"]},
        *({"op": "add", "path": f"/metadata/{key}", "value": value} for key, value in merged.items()),
        {"op": "replace", "path": "/spec", "value": content["spec"]},
    ]
    await api.patch(path_of(content), patch, {"fieldManager": FIELD_MANAGER})


async def _remove(api: ApiServer, content: JsonObject) -> None:
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": content["metadata"]["uid"]}}
    await api.delete(path_of(content), options)
