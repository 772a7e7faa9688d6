"""A fake API server that keeps pods and Events over HTTP on loopback, and fails on request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.support.servers.http_server import http_server
from tests.support.servers.kubeconfigs import write_kubeconfig

Object = dict[str, Any]

LACKS_RIGHT = 'events is forbidden: User "u" cannot create resource "events" in API group "" in the namespace "team-a"'
DENIED_BY_WEBHOOK = 'admission webhook "validate.example.com" denied the request: no Events in this namespace'


@dataclass
class FakeEventsApi:
    """Keeps `events` by name, with a resourceVersion each; a request gets the next of `failures`, if there is one.

    `message` is that of the failures. Requests of a path that ends in `fails_on` fail with 503.
    """

    pods: list[Object] = field(default_factory=list)
    replica_sets: dict[str, Object] = field(default_factory=dict)
    events: dict[str, Object] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    message: str = ""
    fails_on: str = ""
    asked: list[str] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; all are counted in `asked`."""
        self.asked.append(f"{request.method} {request.path}")
        if self.fails_on and request.path.endswith(self.fails_on):
            return _status(503)
        if self.failures:
            code, cause = self.failures.pop(0)
            return _status(code, cause, self.message)
        if request.method == "POST":
            return self._create(orjson.loads(await request.read()))
        name = request.path.rpartition("/")[2]
        if request.method == "PATCH":
            return self._patch(name, orjson.loads(await request.read()))
        if name == "pods":
            return _json({"kind": "PartialObjectMetadataList", "metadata": {}, "items": self.pods})
        found = self.replica_sets.get(name)
        return _json(found) if found else _status(404)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the counts of the Events by name of the object and reason."""
        return {(each["involvedObject"]["name"], each["reason"]): each["count"] for each in self.events.values()}

    def kubeconfig(self, folder: Path) -> Path:
        """Return a kubeconfig of this server."""
        return write_kubeconfig(folder, self.url)

    def _create(self, event: Object) -> web.Response:
        name = event["metadata"]["name"]
        if name in self.events:
            return _status(409)
        event["metadata"]["resourceVersion"] = "1"
        self.events[name] = event
        return _json(event, 201)

    def _patch(self, name: str, patch: Object) -> web.Response:
        event = self.events.get(name)
        if event is None:
            return _status(404)
        metadata = event["metadata"]
        given = patch.pop("metadata", {}).get("resourceVersion", metadata["resourceVersion"])
        if given != metadata["resourceVersion"]:
            return _status(409)
        if patch:
            event |= patch
            metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return _json(event)


@asynccontextmanager
async def fake_events_api() -> AsyncIterator[FakeEventsApi]:
    """The server, until the block ends."""
    api = FakeEventsApi()
    async with http_server(api.answer) as api.url:
        yield api


def _json(content: Object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


def _status(code: int, cause: str = "", message: str = "") -> web.Response:
    details = {"causes": [{"reason": cause}]} if cause else {}
    return _json({"kind": "Status", "code": code, "message": message or f"because {code}", "details": details}, code)
