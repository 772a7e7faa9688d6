"""The admin port: liveness, readiness, metrics."""

from collections.abc import Callable

from aiohttp import hdrs, web

from webhook.metrics import CONTENT_TYPE, Metrics


class Health:
    """The server's readiness: ready while it listens and does not stop, unless `unready_reason()` returns a reason."""

    def __init__(self, metrics: Metrics, unready_reason: Callable[[], str]) -> None:
        self.ready = False
        self._metrics = metrics
        self._unready_reason = unready_reason

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer `/healthz`, `/readyz` and `/metrics`."""
        path = request.raw_path.partition("?")[0]
        if path not in ("/healthz", "/readyz", "/metrics"):
            raise web.HTTPNotFound
        if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_GET, hdrs.METH_HEAD])
        if path == "/metrics":
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        reason = "" if path == "/healthz" else self._unready_reason() if self.ready else "starting or stopping"
        if reason:
            return web.Response(status=503, text=f"not ready: {reason}\n")
        return web.Response(text="ok\n")
