"""Read the release of an API server, and read it again at intervals: it can be upgraded while we run."""

import asyncio
from collections.abc import Callable

import structlog

from webhook.documents.field import InvalidInput
from webhook.kube.release import ASSUMED, Release
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Connect

_MOST_BYTES = 64 * 1024


async def read_release(server: ApiServer) -> Release:
    """Return the release of the API server.

    Raises:
        ApiServerError: it cannot be read.
        InvalidInput: it is no version of Kubernetes.
    """
    version = await server.get("/version", {}, most_bytes=_MOST_BYTES)
    return Release.of(version.get("gitVersion"), "/version: gitVersion")


async def poll_release(
    connect: Connect,
    on_release: Callable[[Release], None],
    interval_seconds: float,
    on_fault: Callable[[], None] = lambda: None,
) -> None:
    """Call `on_release` with the release at each interval, until cancelled; not if it cannot be read.

    `on_fault` is called after an internal error, which ends nothing.
    """
    log = structlog.get_logger()
    known, is_refused = ASSUMED, False
    while True:
        try:
            async with connect() as server:
                release = await read_release(server)
            on_release(release)
            if release != known:
                log.info("release of the cluster", version=release.version, note=release.note)
            known, is_refused = release, False
        except (ApiServerError, InvalidInput) as error:
            if not is_refused:
                log.warning("the release of the cluster cannot be read", error=str(error), used=f"1.{known.minor}")
            is_refused = True
        except Exception:
            on_fault()
            log.exception("the release of the cluster cannot be read")
        await asyncio.sleep(interval_seconds)
