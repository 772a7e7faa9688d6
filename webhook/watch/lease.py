"""Leader election with a Lease: the `kubernetes` package runs it with a lock over `ApiServer`."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import structlog
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import CONFLICT, NOT_FOUND, ApiServer, Connect

_VERSION = "coordination.k8s.io/v1"
_LONGEST_MANAGER = 128
_NO_ANSWER = 503
_NOT_HELD = "a Lease cannot be read or written, so no replica may be the leader"


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """The Lease, the name of this replica, and the times of client-go. Another replica takes over after `seconds`."""

    namespace: str
    name: str
    holder: str
    seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0


class _Lock(BaseLock):
    """The Lease as the lock of the package. If the API server returns an error, the lock is not available."""

    def __init__(self, connect: Connect, options: LeaseOptions) -> None:
        super().__init__(options.name, options.namespace, options.holder)
        self._connect = connect
        namespace, name = (quote(each, safe="") for each in (options.namespace, options.name))
        self._path = f"/apis/{_VERSION}/namespaces/{namespace}/leases/{name}"
        self._lease: JsonObject = {}
        self._failure = ""
        self._log = structlog.get_logger().bind(lease=f"{options.namespace}/{options.name}")

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:  # noqa: ARG002 - the interface
        try:
            async with self._connected() as api:
                self._lease = await api.get(self._path, {})
        except ApiServerError as error:
            failure = ApiException(status=error.code, reason=str(error))
            failure.body = json.dumps({"code": error.code or _NO_ANSWER})
            return False, failure
        spec = self._lease.get("spec") or {}
        keys = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime")
        return True, LeaderElectionRecord(*(spec.get(key) or None for key in keys))

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:  # noqa: ARG002
        lease = {"apiVersion": _VERSION, "kind": "Lease", "metadata": {"name": name}, "spec": _spec(election_record)}
        # By its name, so that a role can limit the right to it. Of two replicas that create it, one gets a conflict.
        query = {"fieldManager": self.identity[:_LONGEST_MANAGER]}
        return await self._written(lambda api: api.apply(self._path, lease, query))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:  # noqa: ARG002
        return await self._written(lambda api: self._patch(api, _spec(updated_record)))

    async def release(self) -> None:
        """Let another replica take over at once, if this one is the leader."""
        if field(self._lease, "spec", "holderIdentity") == self.identity:
            await self._written(lambda api: self._patch(api, {"holderIdentity": "", "leaseDurationSeconds": 1}))

    def _patch(self, api: ApiServer, spec: JsonObject) -> Awaitable[JsonObject]:
        version = field(self._lease, "metadata", "resourceVersion")
        return api.patch(self._path, {"metadata": {"resourceVersion": version}, "spec": spec}, {})

    async def _written(self, write: Callable[[ApiServer], Awaitable[JsonObject]]) -> bool:
        try:
            async with self._connected() as api:
                self._lease = await write(api)
        except ApiServerError:
            return False
        return True

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ApiServer]:
        """Yield a connection. Log an error once, unless another replica was faster or there is no Lease yet."""
        try:
            async with self._connect() as api:
                yield api
        except (InvalidInput, ApiServerError) as error:
            code = error.code if isinstance(error, ApiServerError) else 0
            if code not in (NOT_FOUND, CONFLICT) and str(error) != self._failure:
                self._failure = str(error)
                self._log.warning(_NOT_HELD, error=self._failure)
            raise ApiServerError(str(error), code) from error
        self._failure = ""


def _spec(record: LeaderElectionRecord) -> JsonObject:
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": int(float(str(record.lease_duration))),
        "acquireTime": _micro_time(str(record.acquire_time)),
        "renewTime": _micro_time(str(record.renew_time)),
    }


def _micro_time(text: str) -> str:
    """Return a time in the format of Leases. The package uses local times without a zone."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


async def lead(connect: Connect, options: LeaseOptions, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work`, which handles its errors, while this replica is the leader, until cancelled."""
    # It logs each attempt in words of its own.
    logging.getLogger("kubernetes.aio.leaderelection").setLevel(logging.CRITICAL)
    lock, log = _Lock(connect, options), structlog.get_logger()
    working: asyncio.Task[None] | None = None

    async def started() -> None:
        nonlocal working
        working = asyncio.current_task()
        log.info("this replica is the leader", lease=f"{options.namespace}/{options.name}", holder=options.holder)
        await work()

    async def stopped() -> None:
        log.warning("this replica is no longer the leader", lease=f"{options.namespace}/{options.name}")

    times = (options.seconds, options.renew_deadline_seconds, options.retry_seconds)
    try:
        while True:
            await LeaderElection(Config(lock, *times, started, stopped)).run()
            await _ended(working)
    finally:
        # The package leaves the task alone when it is cancelled itself.
        await _ended(working)
        await lock.release()


async def _ended(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
