"""The admin port: liveness, readiness, metrics."""

from aiohttp import web

from webhook.metrics import CONTENT_TYPE, Metrics


class Health:
    """Whether the server is ready: from when it listens until it begins to stop."""

    def __init__(self, metrics: Metrics) -> None:
        self.ready = False
        self._metrics = metrics

    def application(self) -> web.Application:
        """The aiohttp application with `/healthz`, `/readyz` and `/metrics`."""
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics_text)
        return application

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.ready:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="not ready: starting or stopping\n")

    async def _metrics_text(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
