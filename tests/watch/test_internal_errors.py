"""A reflector after an internal error: its objects may be wrong, so it lists them again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
import pytest
from structlog.testing import capture_logs

from webhook.cluster.cache.cluster_cache import InvalidObject
from webhook.cluster.cache.resources import Resource
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer
from webhook.watch.reflector import Reflector
from webhook.watch.store import ObjectsByName
from webhook.watch.timing import Timing

KIND = Resource("Example", "example.com/v1", "examples")
FAST = Timing(first_pause_seconds=0.0, longest_pause_seconds=0.0, shortest_watch_seconds=0.0)


def example(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class FaultyStore(ObjectsByName):
    """A store that fails once at the object `bad`."""

    fails = True

    def apply(self, name: str, event: str, content: dict[str, Any]) -> InvalidObject | None:
        if content["metadata"]["name"] == "bad" and self.fails:
            self.fails = False
            raise ZeroDivisionError("out of order")
        return super().apply(name, event, content)


class Server:
    """An API server with one object more in each list. The first watch has the events `first`."""

    def __init__(self, *first: bytes, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._first, self._error = first, error
        self.is_done = asyncio.Event()

    async def body(self, *_: object) -> bytes:
        lists = sum(each == "list" for each in self.asked) + 1
        self.asked.append("list")
        items = [example(f"listed-{number}", number) for number in range(lists)]
        return orjson.dumps({"metadata": {"resourceVersion": str(10 * lists)}, "items": items})

    async def get(self, *_: object, **__: object) -> dict[str, Any]:
        self.asked.append("newest version")
        return {"metadata": {"resourceVersion": "1"}}

    async def lines(self, _: str, query: dict[str, Any], *__: object) -> AsyncIterator[list[bytes]]:
        watches = sum(each.startswith("watch") for each in self.asked)
        self.asked.append(f"watch from {query['resourceVersion']}")
        if watches == 0:
            yield list(self._first)
            if self._error is not None:
                raise self._error
        self.is_done.set()
        await asyncio.Event().wait()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[ApiServer]:
        yield cast("ApiServer", self)


def event(kind: str, content: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": content})


@pytest.mark.parametrize(
    ("bad", "error", "asked", "names", "faults"),
    [
        pytest.param(
            True,
            None,
            ["list", "watch from 10", "list", "watch from 20"],
            ["listed-0", "listed-1"],
            ["fault"],
            id="an internal error",
        ),
        pytest.param(
            False,
            ApiServerError("broken"),
            ["list", "watch from 10", "newest version", "watch from 12"],
            ["bad", "listed-0", "new"],
            [],
            id="an interruption",
        ),
        pytest.param(
            False,
            ApiServerError("expired", 410),
            ["list", "watch from 10", "list", "watch from 20"],
            ["listed-0", "listed-1"],
            [],
            id="an expired version",
        ),
    ],
)
def test_objects_are_listed_again_after_errors_that_can_lose_a_change(
    bad: bool, error: Exception | None, asked: list[str], names: list[str], faults: list[str]
) -> None:
    found: list[str] = []

    async def run() -> tuple[Server, FaultyStore]:
        server, store = (
            Server(event("ADDED", example("new", 11)), event("ADDED", example("bad", 12)), error=error),
            FaultyStore(),
        )
        store.fails = bad
        reflector = Reflector(KIND, store, server.connect, FAST, on_fault=lambda: found.append("fault"))
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(10):
            await server.is_done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return server, store

    with capture_logs():
        server, store = asyncio.run(run())
    assert (server.asked, sorted(store.by_name or ()), found) == (asked, names, faults)
