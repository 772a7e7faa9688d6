"""The admin port of the certs controller: liveness, readiness, metrics."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from certs.controller.metrics import ControllerMetrics
from webhook.kube.field import InvalidInput, invalid
from webhook.metrics import CONTENT_TYPE
from webhook.settings import Address


@asynccontextmanager
async def admin_port(
    address: Address, metrics: ControllerMetrics, unready_reason: Callable[[], str], note: Callable[[], str]
) -> AsyncIterator[Address]:
    """Serve `/healthz`, `/readyz` and `/metrics` until the block ends; yield the address with its port.

    Raises:
        InvalidInput: the port is in use, or the address is not of this machine.
    """

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        reason, noted = unready_reason(), note()
        lines = [f"not ready: {reason}" if reason else "ok", *([noted] if noted else [])]
        return web.Response(status=503 if reason else 200, text="".join(f"{line}\n" for line in lines))

    async def measured(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.add_routes([web.get("/healthz", healthy), web.get("/readyz", ready), web.get("/metrics", measured)])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except OSError as error:
            detail = f"cannot listen there: {error.strerror or error}; choose another address"
            raise InvalidInput([invalid("--admin-listen", str(address), detail)]) from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()
