"""The web application of the console: static files, endpoints, the feed, and the thread for expensive answers."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
from aiohttp import web

from placement_console.cluster_state import ClusterState
from placement_console.feed import Feed
from placement_console.guard import Handler, add_headers, guarded
from placement_console.page import Asked, Endpoint, NotFoundError, Sources
from placement_console.pages import admissions, cluster, manifests, pending, policies
from webhook.documents.field import InvalidInput
from webhook.documents.text import json_bytes
from webhook.kube.deadline import Expired, never
from webhook.runtime.token_bucket import TokenBucket
from webhook.serving.view.views import View

T = TypeVar("T")

# The pages that have endpoints of their own, in the order of their tabs.
_PAGES = (cluster, pending, manifests, admissions, policies)
STATIC = Path(__file__).parent / "static"
# A manifest with many documents; the API server takes objects of 3 MiB.
MOST_BODY_BYTES = 1024 * 1024
# A person and a few colleagues look at the console: more is a loop in a page, or abuse.
_MOST_WAITING = 8
_MOST_SECONDS = 30.0
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Worker:
    """Computes answers in one thread, in the order of their requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "console")
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._is_closed = False

    async def run(self, begin: Callable[[], Callable[[Expired], T]]) -> T:
        """Run the work that `begin` returns in the thread, and return its result.

        `begin` is called in the event loop when it is its turn. The argument of the work is a function that returns
        whether its time is over.

        Raises:
            web.HTTPTooManyRequests: too many requests are waiting.
        """
        if self._waiting >= _MOST_WAITING:
            raise _too_many(f"{self._waiting} requests wait already; try again later", 5.0)
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._limited, begin())
        finally:
            self._waiting -= 1

    def _limited(self, work: Callable[[Expired], T]) -> T:
        end_seconds = time.monotonic() + _MOST_SECONDS
        return work(lambda: self._is_closed or time.monotonic() > end_seconds)

    def close(self) -> None:
        """End the thread after the running work, whose time is then over."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def post_limit(now_seconds: float) -> TokenBucket:
    """Return the rate limit of requests with a body: a burst of ten, then one every two seconds."""
    return TokenBucket(10, 2.0, now_seconds)


def _too_many(message: str, retry_seconds: float) -> web.HTTPTooManyRequests:
    return web.HTTPTooManyRequests(reason=message, headers={"Retry-After": str(math.ceil(retry_seconds))})


def application(sources: Sources) -> web.Application:
    """Return the application that serves the pages of `sources`."""
    app = web.Application(middlewares=[guarded, _answered], client_max_size=MOST_BODY_BYTES)
    app.on_response_prepare.append(add_headers)
    feed = Feed(sources.view, ClusterState(sources.session.rules.default, sources.facts), sources.name)
    worker, limit = Worker(), post_limit(time.monotonic())

    async def close(_: web.Application) -> None:
        worker.close()

    app.on_cleanup.append(close)
    app.router.add_get("/api/events", feed.serve, allow_head=False)
    app.router.add_get("/healthz", partial(_health, sources))
    for each in all_endpoints(sources):
        app.router.add_route(each.method, each.path, _handler(each, sources.view, worker, limit))
    for path, file in static_files().items():
        address = "/" if path == "index.html" else f"/{path}"
        app.router.add_get(address, partial(_send_file, file.read_bytes(), _TYPES[file.suffix]))
    return app


def all_endpoints(sources: Sources) -> list[Endpoint]:
    """Return the endpoints of all pages."""
    return [each for page in _PAGES for each in page.endpoints(sources)]


def static_files() -> dict[str, Path]:
    """Return the files that a browser loads, by URL path. No other file is ever sent."""
    found = (each for each in sorted(STATIC.rglob("*")) if each.suffix in _TYPES)
    return {each.relative_to(STATIC).as_posix(): each for each in found}


async def _send_file(content: bytes, kind: str, _: web.Request) -> web.Response:
    return web.Response(body=content, content_type=kind, charset="utf-8")


async def _health(sources: Sources, _: web.Request) -> web.Response:
    is_ready = not math.isinf(sources.view.age_seconds())
    return web.Response(text="ok" if is_ready else "the view of the cluster is not there yet", status=200)


def _handler(endpoint: Endpoint, view: View, worker: Worker, limit: TokenBucket) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        if endpoint.method == "POST" and (wait_seconds := limit.take(time.monotonic())):
            raise _too_many("too many requests; try again in a few seconds", wait_seconds)
        body = await request.read() if request.can_read_body else b""

        def begin() -> Callable[[Expired], bytes]:
            asked = partial(Asked, view.snapshot(), dict(request.query), body)
            return lambda expired: json_bytes(endpoint.answer(asked(expired)))

        text = await worker.run(begin) if endpoint.is_costly else begin()(never)
        response = web.Response(body=text, content_type="application/json")
        response.enable_compression()
        return response

    return handle


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return errors as JSON with one text each. An internal error is logged, and its cause is not sent."""
    try:
        return await handler(request)
    except InvalidInput as error:
        return _errors(422, *map(str, error.errors))
    except NotFoundError as error:
        return _errors(404, str(error))
    except web.HTTPException as error:
        response = _errors(error.status, error.reason)
        if "Retry-After" in error.headers:
            response.headers["Retry-After"] = error.headers["Retry-After"]
        return response
    except Exception:
        structlog.get_logger().exception("a request failed", path=request.path)
        return _errors(500, "internal error; the log of the console has it")


def _errors(status: int, *texts: str) -> web.Response:
    return web.Response(status=status, body=json_bytes({"errors": texts}), content_type="application/json")
