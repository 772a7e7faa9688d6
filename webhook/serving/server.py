"""The two listeners, from start to graceful end.

    starting --both listen--> ready --stop asked--> draining --delay, then nothing in flight--> gone

A draining server is not ready but goes on to answer: load balancers and the API server need a moment to turn away.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
from aiohttp import web

from webhook.kube.field import InvalidInput, invalid
from webhook.serving.connections import Connections
from webhook.serving.health import Health
from webhook.serving.http import MutateEndpoint
from webhook.settings import Address, Settings

_BACKLOG = 1024
_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 5.0
# Longer than the 90 s after which Go's client drops an idle connection, so that it never sends into a closing one.
_KEEPALIVE_SECONDS = 120.0


class Server:
    """Serves `/mutate` over TLS and the admin endpoints in the clear, until told to stop."""

    def __init__(self, settings: Settings, tls: ssl.SSLContext, endpoint: MutateEndpoint, health: Health) -> None:
        self._settings = settings
        self._tls = tls
        self._endpoint = endpoint
        self._health = health
        self._log = structlog.get_logger()

    async def run(self, stop: asyncio.Event, on_ready: Callable[[Address, Address], None] = lambda *_: None) -> None:
        """Serve until `stop` is set, then drain. `on_ready` is told the two addresses, ports resolved.

        Raises:
            InvalidInput: an address cannot be listened on.
        """
        settings = self._settings
        grace_seconds = settings.grace_seconds
        admin = web.AppRunner(
            self._health.application(),
            access_log=None,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            shutdown_timeout=grace_seconds,
        )
        webhook = web.ServerRunner(self._endpoint.server(_KEEPALIVE_SECONDS), shutdown_timeout=grace_seconds)
        async with AsyncExitStack() as ending:
            admin_address = await self._listen(ending, admin, "--admin-listen", settings.admin_listen, None)
            address = await self._listen(ending, webhook, "--listen", settings.listen, self._tls)
            self._health.ready = True
            self._log.info("serving", webhook=str(address), admin=str(admin_address))
            on_ready(address, admin_address)
            await stop.wait()
            self._health.ready = False
            self._endpoint.draining = True
            self._log.info("stopping", delay_seconds=settings.shutdown_delay_seconds)
            await asyncio.sleep(settings.shutdown_delay_seconds)
        self._log.info("stopped")

    async def _listen(
        self, ending: AsyncExitStack, runner: web.BaseRunner, flag: str, address: Address, tls: ssl.SSLContext | None
    ) -> Address:
        """Listen on `address`, until `ending` takes no more connections and then waits for what is in flight."""
        settings = self._settings
        await runner.setup()
        ending.push_async_callback(runner.cleanup)
        assert runner.server is not None  # noqa: S101 - setup() has made it
        try:
            server = await asyncio.get_running_loop().create_server(
                Connections(runner.server, settings.max_connections, settings.read_timeout_seconds),
                address.host,
                address.port,
                ssl=tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls else None,
                ssl_shutdown_timeout=_GOODBYE_SECONDS if tls else None,
            )
        except (OSError, UnicodeError) as error:
            # UnicodeError: what cannot be the name of a host, such as one with an empty label.
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            detail = f"cannot be listened on: {reason}; give another address or port"
            raise InvalidInput([invalid(flag, str(address), detail)]) from error
        ending.callback(server.close)
        host, port = server.sockets[0].getsockname()[:2]
        return Address(host, port)
