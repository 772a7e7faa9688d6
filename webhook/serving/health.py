"""The admin port: liveness, readiness, metrics."""

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from webhook.metrics import CONTENT_TYPE, Metrics


async def _nothing() -> None:
    pass


class Health:
    """The server's readiness: ready while it listens and does not stop, unless `unready_reason()` returns a reason.

    `note()` returns a problem that does not make it unready; empty for none. `before_scrape()` completes the metrics.
    """

    def __init__(
        self,
        metrics: Metrics,
        unready_reason: Callable[[], str],
        note: Callable[[], str] = lambda: "",
        before_scrape: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        self.ready = False
        self._before_scrape = before_scrape
        self._note = note
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
            await self._before_scrape()
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        reason = "" if path == "/healthz" else self._unready_reason() if self.ready else "starting or stopping"
        note = "" if path == "/healthz" else self._note()
        lines = [f"not ready: {reason}" if reason else "ok", *([note] if note else [])]
        return web.Response(status=503 if reason else 200, text="".join(f"{line}\n" for line in lines))
