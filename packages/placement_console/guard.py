"""Reject requests that do not come from the console's own page, and limit what a page may load.

The console has no authentication. It listens on loopback, where the pages of other sites can reach it through the
browser. If a site's name resolves to 127.0.0.1 (DNS rebinding), the browser sends this name as Host. For a page of
another site, the browser sends its Origin or `Sec-Fetch-Site: cross-site`.
"""

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self'; "
    "connect-src 'self'; "
    "base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_OWN_SITES = ("same-origin", "none")


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address, is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(host: str, origin: str | None, site: str | None) -> str:
    """Return the reason to reject a request with these headers, or an empty string if it is accepted.

    `host` can have any port, because `kubectl port-forward` chooses one.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if not is_loopback(name):
        return "the Host header must be localhost or a loopback address"
    if origin is not None and origin != f"http://{host}":
        return "the Origin header names another site"
    if site is not None and site not in _OWN_SITES:
        return "the request comes from another site"
    return ""


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests of other sites, and requests that would change something."""
    headers = request.headers
    reason = refusal(headers.get("Host", ""), headers.get("Origin"), headers.get("Sec-Fetch-Site"))
    if reason:
        return web.json_response({"errors": [reason]}, status=403)
    if request.method == "POST" and "Origin" not in headers:
        return web.json_response({"errors": ["a POST must have an Origin header"]}, status=403)
    return await handler(request)


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that limit what the page may load. Headers that the response already has are kept."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
