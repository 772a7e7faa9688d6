"""A fake API server at the border: lists and watches over HTTP on loopback, scripted answer by answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.support.servers.http_server import http_server
from tests.support.servers.kubeconfigs import write_kubeconfig

Object = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
FAST_SECONDS = 0.01


@dataclass
class FakeApi:
    """Answers `script` in its order on one path, then for ever a watch in which nothing happens.

    `asked` are the queries that came, each with the token that it bore. Lists of one object, which ask how far the
    server is, are not among them: they are answered with the resourceVersion `newest`, and counted.
    """

    path: str
    script: list[Answer] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    newest: str = "0"
    times_asked_how_far: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next answer of the script; other kinds are empty and nothing happens to them."""
        if request.path != self.path:
            return await (quiet(request) if "watch" in request.query else page([])(request))
        if request.query.get("limit") == "1":
            self.times_asked_how_far += 1
            return await page([], self.newest)(request)
        token = request.headers.get("authorization", "")
        self.asked.append({**request.query, **({"token": token} if token else {})})
        return await (self.script.pop(0) if self.script else quiet)(request)

    def kubeconfig(self, folder: Path, token: str = "") -> Path:
        """Return a kubeconfig of this server; `token` is the name of a file."""
        return write_kubeconfig(folder, self.url, token_file=token)


@asynccontextmanager
async def fake_api(path: str, *script: Answer) -> AsyncIterator[FakeApi]:
    """The server, until the block ends."""
    api = FakeApi(path, list(script))
    async with http_server(api.answer) as api.url:
        yield api


def page(items: list[Object], version: str = "1", continuation: str = "") -> Answer:
    """Return one page of a list."""
    metadata = {"resourceVersion": version} | ({"continue": continuation} if continuation else {})
    return json({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})


def json(content: Object, status: int = 200) -> Answer:
    """Return one object."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")

    return answer


def refusal(code: int, reason: str) -> Answer:
    """Return a Status with that code."""
    return json({"kind": "Status", "code": code, "reason": reason, "message": f"because {reason}"}, code)


def events(*given: tuple[str, Object], cut: bytes = b"", lasting_seconds: float = 0.0) -> Answer:
    """Return a watch with these events, which then ends normally, or with `cut` and without an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for kind, content in given:
            await response.write(orjson.dumps({"type": kind, "object": content}) + b"\n")
        await asyncio.sleep(lasting_seconds)
        if cut:
            await response.write(cut)
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


async def quiet(request: web.Request) -> web.StreamResponse:
    """Return a watch without events for a while."""
    return await events(lasting_seconds=60)(request)
