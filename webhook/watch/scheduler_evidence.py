"""Read the signs of schedulers from an API server, and read them again at intervals."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from webhook.cluster.batch.kueue_configuration import pods_ready_timeout
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents.field import InvalidInput
from webhook.kube.names import KUEUE_CONFIGURATION, KUEUE_GROUP, KUEUE_NAMESPACE
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Connect

# The Leases of nodes are thousands, and no scheduler holds one. resourceVersion 0: from the cache of the API server.
_LEASES_PATH = "/apis/coordination.k8s.io/v1/leases"
_LEASES_QUERY = {"fieldSelector": "metadata.namespace!=kube-node-lease", "resourceVersion": "0"}
# About 2,000 Leases. Users can create Leases, and decoding them blocks the event loop.
_MOST_BYTES = 2 * 1024 * 1024
_KUEUE_CONFIGURATION_PATH = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/configmaps/{KUEUE_CONFIGURATION}"
_MOST_CONFIGURATION_BYTES = 64 * 1024


async def read_scheduler_evidence(server: ApiServer) -> SchedulerEvidence:
    """Return the API groups and the Leases of the cluster, and what Kueue's configuration says if it can be read.

    Raises:
        ApiServerError: they cannot be read, or are too many.
    """
    groups = await server.get("/apis", {}, most_bytes=_MOST_BYTES)
    found = SchedulerEvidence.of(groups, await server.get(_LEASES_PATH, _LEASES_QUERY, most_bytes=_MOST_BYTES))
    return (
        replace(found, pods_ready_timeout=await _pods_ready_timeout(server)) if KUEUE_GROUP in found.groups else found
    )


async def _pods_ready_timeout(server: ApiServer) -> str:
    try:
        found = await server.get(_KUEUE_CONFIGURATION_PATH, {}, most_bytes=_MOST_CONFIGURATION_BYTES)
    except ApiServerError:
        return ""
    return pods_ready_timeout(found)


async def poll_scheduler_evidence(
    connect: Connect,
    on_evidence: Callable[[SchedulerEvidence | None], None],
    interval_seconds: float,
    on_fault: Callable[[], None] = lambda: None,
) -> None:
    """Call `on_evidence` with the evidence at each interval, until cancelled; None: it cannot be read.

    `on_fault` is called after an internal error, which ends nothing.
    """
    log = structlog.get_logger()
    is_refused = False
    while True:
        try:
            async with connect() as server:
                on_evidence(await read_scheduler_evidence(server))
            is_refused = False
        except (ApiServerError, InvalidInput) as error:
            on_evidence(None)
            if not is_refused:
                log.warning("signs of schedulers are not known", error=str(error))
            is_refused = True
        except Exception:
            on_evidence(None)
            on_fault()
            log.exception("signs of schedulers cannot be read")
        await asyncio.sleep(interval_seconds)
