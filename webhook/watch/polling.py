"""Poll data that is not watched: the release, the evidence of schedulers, and the webhook configuration."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import quote

import structlog

from webhook.cluster.batch.kueue_configuration import pods_ready_timeout
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.names import (
    KUEUE_CONFIGURATION,
    KUEUE_GROUP,
    KUEUE_NAMESPACE,
    VOLCANO_API_GROUP,
    VOLCANO_CONFIGURATION,
    VOLCANO_NAMESPACE,
)
from webhook.kube.release import ASSUMED, Release
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_READABLE, ApiServer, Connect

_MOST_VERSION_BYTES = 64 * 1024
# The Leases of nodes are thousands, and no scheduler holds one. resourceVersion 0: from the cache of the API server.
_LEASES_PATH = "/apis/coordination.k8s.io/v1/leases"
_LEASES_QUERY = {"fieldSelector": "metadata.namespace!=kube-node-lease", "resourceVersion": "0"}
# About 2,000 Leases. Users can create Leases, and decoding them blocks the event loop.
_MOST_LEASES_BYTES = 2 * 1024 * 1024
_KUEUE_CONFIGURATION_PATH = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/configmaps/{KUEUE_CONFIGURATION}"
_VOLCANO_CONFIGURATION_PATH = f"/api/v1/namespaces/{VOLCANO_NAMESPACE}/configmaps/{VOLCANO_CONFIGURATION}"
_MOST_CONFIG_MAP_BYTES = 64 * 1024
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# Twice the size that etcd stores.
_MOST_CONFIGURATION_BYTES = 3 * 1024 * 1024

_T = TypeVar("_T")
_FAILURES = (ApiServerError, InvalidInput)


async def read_release(server: ApiServer) -> Release:
    """Return the release of the API server.

    Raises:
        ApiServerError: it cannot be read.
        InvalidInput: the version is not a version of Kubernetes.
    """
    version = await server.get("/version", {}, most_bytes=_MOST_VERSION_BYTES)
    return Release.of(version.get("gitVersion"), "/version: gitVersion")


async def read_scheduler_evidence(server: ApiServer) -> SchedulerEvidence:
    """Return the evidence in API groups and Leases of the cluster, and in the configurations that can be read.

    These are the ConfigMaps of Kueue and Volcano, which can have other names.

    Raises:
        ApiServerError: the API groups or Leases cannot be read or are too many.
    """
    groups = await server.get("/apis", {}, most_bytes=_MOST_LEASES_BYTES)
    leases = await server.get(_LEASES_PATH, _LEASES_QUERY, most_bytes=_MOST_LEASES_BYTES)
    found = SchedulerEvidence.of(groups, leases, datetime.now(UTC))
    if KUEUE_GROUP in found.groups:
        kueue = await _config_map(server, _KUEUE_CONFIGURATION_PATH)
        found = replace(found, pods_ready_timeout=pods_ready_timeout(kueue))
    if VOLCANO_API_GROUP in found.groups:
        volcano = await _config_map(server, _VOLCANO_CONFIGURATION_PATH)
        found = replace(found, volcano=VolcanoConfiguration.of(volcano))
    return found


async def _config_map(server: ApiServer, path: str) -> JsonObject:
    """Return a ConfigMap, or an empty object if it cannot be read."""
    try:
        return await server.get(path, {}, most_bytes=_MOST_CONFIG_MAP_BYTES)
    except ApiServerError:
        return {}


async def read_webhook_configuration(server: ApiServer, name: str) -> JsonObject:
    """Return the MutatingWebhookConfiguration.

    Raises:
        ApiServerError: it cannot be read.
    """
    return await server.get(f"{_CONFIGURATIONS}/{quote(name, safe='')}", {}, most_bytes=_MOST_CONFIGURATION_BYTES)


class Polling:
    """Polls at intervals with callbacks until cancelled. `on_fault` is called after an internal error."""

    def __init__(self, connect: Connect, interval_seconds: float, on_fault: Callable[[], None] = lambda: None) -> None:
        self._connect, self._interval_seconds, self._on_fault = connect, interval_seconds, on_fault
        self._log = structlog.get_logger()

    async def release(self, on_release: Callable[[Release], None]) -> None:
        """Poll the release of a cluster that can be upgraded; the last known one is kept."""
        known = ASSUMED

        def take(release: Release) -> None:
            nonlocal known
            on_release(release)
            if release != known:
                self._log.info("release of the cluster", version=release.version, note=release.note)
            known = release

        unknown = "the release of the cluster cannot be read"
        await self._poll(read_release, take, lambda _: {"used": f"1.{known.minor}"}, unknown, unknown)

    async def scheduler_evidence(self, on_evidence: Callable[[SchedulerEvidence | None], None]) -> None:
        """Poll the evidence of schedulers. `on_evidence` gets None if it cannot be read."""

        def fail(_: Exception) -> JsonObject:
            on_evidence(None)
            return {}

        unknown, fault = "signs of schedulers are not known", "signs of schedulers cannot be read"
        await self._poll(read_scheduler_evidence, on_evidence, fail, unknown, fault)

    async def webhook_configuration(self, name: str, on_configuration: Callable[[JsonObject | None], None]) -> None:
        """Poll a MutatingWebhookConfiguration. `on_configuration` can raise InvalidInput.

        It gets None if the configuration is invalid, absent or forbidden. If the API server does not answer, the last
        known configuration is kept; if none is known yet, `on_configuration` gets None.
        """
        is_known = False

        def take(configuration: JsonObject) -> None:
            nonlocal is_known
            on_configuration(configuration)
            is_known = True

        def fail(error: Exception) -> JsonObject:
            nonlocal is_known
            stays = is_known and isinstance(error, ApiServerError) and error.code not in NOT_READABLE
            if isinstance(error, _FAILURES) and not stays:
                on_configuration(None)
                is_known = True
            return {"name": name, "error": str(error)}

        unknown, fault = "the webhook configuration is not known", "the webhook configuration cannot be read"
        await self._poll(lambda server: read_webhook_configuration(server, name), take, fail, unknown, fault)

    async def _poll(
        self,
        read: Callable[[ApiServer], Awaitable[_T]],
        take: Callable[[_T], None],
        fail: Callable[[Exception], JsonObject],
        unknown: str,
        fault: str,
    ) -> None:
        """Call `take` with the result of `read`. Log a failure as `unknown`, or as `fault` if it is internal."""
        logged: JsonObject | None = None
        while True:
            try:
                try:
                    async with self._connect() as server:
                        take(await read(server))
                    logged = None
                except _FAILURES as error:
                    facts = fail(error)
                    if facts != logged:
                        self._log.warning(unknown, **{"error": str(error), **facts})
                    logged = facts
            except Exception as error:
                self._on_fault()
                self._log.exception(fault, **fail(error))
            await asyncio.sleep(self._interval_seconds)
