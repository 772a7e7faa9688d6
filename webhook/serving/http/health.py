"""The admin port: liveness, readiness, metrics, the policy in force."""

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import hdrs, web

from webhook.runtime.metrics import CONTENT_TYPE, Metrics
from webhook.serving.http.bearer_token import BearerToken

_PROBES = ("/healthz", "/readyz")
_SERVICE_DOMAINS = (".svc", ".svc.cluster.local")


class Health:
    """The server's readiness.

    It is ready while it listens and is not stopping, unless `unready_reason()` returns a reason.

    Each of `notes` returns a problem that does not make the server unready, or an empty string. `policy()` describes
    the policy. `before_scrape()` updates metrics before a scrape. With a `token`, all paths except the probes of the
    kubelet require it. Without one, they require a Host header that no page of another site can have.
    """

    def __init__(
        self,
        metrics: Metrics,
        unready_reason: Callable[[], str],
        *notes: Callable[[], str],
        policy: Callable[[], dict[str, Any]] = dict,
        before_scrape: Callable[[], Awaitable[None]] | None = None,
        token: BearerToken | None = None,
    ) -> None:
        self._token = token
        self.ready = False
        self._before_scrape = before_scrape
        self._notes = notes
        self._policy = policy
        self._metrics = metrics
        self._unready_reason = unready_reason

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer `/healthz`, `/readyz`, `/metrics` and `/policy`."""
        path = request.raw_path.partition("?")[0]
        if path not in ("/healthz", "/readyz", "/metrics", "/policy"):
            raise web.HTTPNotFound
        if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_GET, hdrs.METH_HEAD])
        given = request.headers.get(hdrs.AUTHORIZATION, "")
        if path not in _PROBES and self._token is None and not is_own_host(request.headers.get(hdrs.HOST, "")):
            text = "the Host header must be an IP address, localhost or a Service; --admin-token-file allows others\n"
            raise web.HTTPForbidden(text=text)
        if path not in _PROBES and not (self._token is None or self._token.allows(given)):
            text = "needs the header Authorization: Bearer TOKEN, with the token of --admin-token-file\n"
            raise web.HTTPUnauthorized(text=text, headers={hdrs.WWW_AUTHENTICATE: "Bearer"})
        if path == "/metrics":
            if self._before_scrape is not None:
                await self._before_scrape()
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        if path == "/policy":
            body = orjson.dumps(self._policy(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            return web.Response(body=body, content_type="application/json")
        reason = "" if path == "/healthz" else self._unready_reason() if self.ready else "starting or stopping"
        notes = [] if path == "/healthz" else [note for each in self._notes if (note := each())]
        lines = [f"not ready: {reason}" if reason else "ok", *notes]
        return web.Response(status=503 if reason else 200, text="".join(f"{line}\n" for line in lines))


def is_own_host(host: str) -> bool:
    """Return whether the Host header is absent (no browser) or a name that no site can have (DNS rebinding)."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if "." not in name and ":" not in name:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return name.endswith(_SERVICE_DOMAINS)
