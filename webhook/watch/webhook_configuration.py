"""Read a MutatingWebhookConfiguration of an API server, and read it again at intervals."""

import asyncio
from collections.abc import Callable
from urllib.parse import quote

import structlog

from webhook.documents.field import InvalidInput
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_READABLE, ApiServer, Connect, JsonObject

_PATH = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# Twice the size that etcd stores.
_MOST_BYTES = 3 * 1024 * 1024


async def read_webhook_configuration(server: ApiServer, name: str) -> JsonObject:
    """Return the configuration.

    Raises:
        ApiServerError: it cannot be read.
    """
    return await server.get(f"{_PATH}/{quote(name, safe='')}", {}, most_bytes=_MOST_BYTES)


async def poll_webhook_configuration(
    connect: Connect,
    name: str,
    on_configuration: Callable[[JsonObject | None], None],
    interval_seconds: float,
    on_fault: Callable[[], None] = lambda: None,
) -> None:
    """Call `on_configuration` with the configuration at each interval, until cancelled.

    It can raise InvalidInput. None: the configuration is invalid, absent, or may not be read. If the API server does
    not answer, what is known stays; before anything is known, this is None, too. `on_fault` is called after an internal
    error, which ends nothing.
    """
    log = structlog.get_logger().bind(name=name)
    is_known, noted = False, ""
    while True:
        try:
            error = await _failure(connect, name, on_configuration)
            if error is not None and (not is_known or isinstance(error, InvalidInput) or error.code in NOT_READABLE):
                on_configuration(None)
            is_known = True
            if error is not None and str(error) != noted:
                log.warning("the webhook configuration is not known", error=str(error))
            noted = "" if error is None else str(error)
        except Exception:
            on_fault()
            log.exception("the webhook configuration cannot be read")
        await asyncio.sleep(interval_seconds)


async def _failure(
    connect: Connect, name: str, on_configuration: Callable[[JsonObject], None]
) -> ApiServerError | InvalidInput | None:
    """Call `on_configuration` with the configuration, or return why it cannot be read or is invalid."""
    try:
        async with connect() as server:
            on_configuration(await read_webhook_configuration(server, name))
    except (ApiServerError, InvalidInput) as error:
        return error
    return None
