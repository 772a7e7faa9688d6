"""The admin port: liveness, readiness, metrics."""

from aiohttp import hdrs, web

from webhook.metrics import CONTENT_TYPE, Metrics


class Health:
    """Whether the server is ready: from when it listens until it begins to stop."""

    def __init__(self, metrics: Metrics) -> None:
        self.ready = False
        self._metrics = metrics

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer `/healthz`, `/readyz` and `/metrics`."""
        path = request.raw_path.partition("?")[0]
        if path not in ("/healthz", "/readyz", "/metrics"):
            raise web.HTTPNotFound
        if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_GET, hdrs.METH_HEAD])
        if path == "/metrics":
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        if path == "/healthz" or self.ready:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="not ready: starting or stopping\n")
