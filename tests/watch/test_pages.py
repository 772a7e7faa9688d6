"""Lists are read in pages that are limited by bytes, and few large bodies are in memory together."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest

from webhook.kube.pod.stored_pod import StoredPod
from webhook.watch import api_errors, pages
from webhook.watch.api_errors import ApiServerError, TooLargeError, parsed
from webhook.watch.api_server import GONE, ApiServer, ClientConfig
from webhook.watch.pages import list_pages

PAGE_BYTES, OBJECT_BYTES = 1_000, 5_000


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (api_errors, pages):
        monkeypatch.setattr(module, "PAGE_BYTES", PAGE_BYTES)
        monkeypatch.setattr(module, "OBJECT_BYTES", OBJECT_BYTES)


class Listed:
    """An API server with objects of these sizes; `asked` are the first object and the number of each request."""

    def __init__(self, *sizes: int, expires_at: int = -1, times: int = 1, code: int = GONE) -> None:
        self.items: list[Any] = [
            {"metadata": {"name": str(number)}, "args": "x" * size} for number, size in enumerate(sizes)
        ]
        self.asked: list[tuple[int, int]] = []
        self.expires_at, self.times, self.code = expires_at, times, code

    async def body(self, path: str, query: Any, most_bytes: int) -> bytes:
        start, limit = int(query.get("continue", 0)), query["limit"]
        self.asked.append((start, limit))
        if start == self.expires_at and self.times:
            self.times -= 1
            raise ApiServerError("expired", self.code)
        end = min(start + limit, len(self.items))
        metadata = {"resourceVersion": "7"} | ({"continue": str(end)} if end < len(self.items) else {})
        body = orjson.dumps({"metadata": metadata, "items": self.items[start:end]})
        if len(body) > most_bytes:
            raise TooLargeError(f"GET {path}: the response is larger than {most_bytes} bytes")
        return body


def names_of(server: Any, page_size: int = 8) -> list[list[str]]:
    """Return the names on each page that is used."""
    found: list[list[str]] = []

    async def take(items: list[dict[str, Any]], is_first: bool) -> None:
        if is_first:
            found.clear()
        found.append([each["metadata"]["name"] for each in items])

    assert asyncio.run(list_pages(server, "/api/v1/pods", {}, take, page_size)) == "7"
    return found


def test_page_that_is_too_large_is_requested_again_with_half_the_objects() -> None:
    server = Listed(*[300] * 4)
    assert names_of(server) == [["0", "1"], ["2", "3"]]
    assert server.asked == [(0, 8), (0, 4), (0, 2), (2, 2)]


def test_object_that_is_larger_than_a_page_is_read_alone() -> None:
    server = Listed(10, 3_000, 10)
    assert names_of(server, page_size=2) == [["0"], ["1"], ["2"]]
    assert server.asked == [(0, 2), (0, 1), (1, 2), (1, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(("spec", "is_read"), [({}, True), ("malformed", False)])
def test_items_are_read_from_their_json_unless_one_is_malformed(spec: Any, is_read: bool) -> None:
    server, pages_read = Listed(1, 1, 1), list[list[Any]]()
    for item in server.items:
        item["spec"] = {"nodeName": "a"}
    server.items[2]["spec"] = spec

    async def take(items: list[Any], _: bool) -> None:
        pages_read.append(items)

    asyncio.run(list_pages(server, "/api/v1/pods", {}, take, 8, read_item=StoredPod.in_list))  # type: ignore[arg-type]
    (items,) = pages_read
    assert [isinstance(each, StoredPod) for each in items] == [is_read] * 3
    assert [dict(each) for each in items] == server.items


def test_pages_grow_again_behind_large_objects() -> None:
    server = Listed(900, *[1] * 7)
    assert [len(page) for page in names_of(server, page_size=4)] == [1, 1, 2, 4]


def test_object_beyond_every_bound_fails_the_list() -> None:
    with pytest.raises(TooLargeError):
        names_of(Listed(OBJECT_BYTES))


def test_list_that_expires_starts_again_in_pages() -> None:
    server = Listed(*[300] * 4, expires_at=2)
    assert names_of(server) == [["0", "1"], ["2", "3"]]
    assert server.asked[-3:] == [(2, 2), (0, 2), (2, 2)]


@pytest.mark.parametrize(("code", "expires_at"), [(500, 2), (0, 2), (GONE, 0)])
def test_list_that_fails_otherwise_is_left_to_the_caller(code: int, expires_at: int) -> None:
    server = Listed(*[300] * 4, expires_at=expires_at, code=code)
    with pytest.raises(ApiServerError, match="expired"):
        names_of(server, page_size=2)
    assert server.asked[-1] == (expires_at, 2)


def test_list_that_expires_twice_is_left_to_the_caller() -> None:
    with pytest.raises(ApiServerError, match="expired"):
        names_of(Listed(*[300] * 4, expires_at=2, times=2))


def test_lists_that_share_a_gate_have_one_decoded_page_at_a_time() -> None:
    together: list[int] = []

    async def run() -> None:
        gate, used = asyncio.Lock(), 0

        async def take(_: Any, is_first: bool) -> None:
            nonlocal used
            used += 1
            await asyncio.sleep(0)
            together.append(used)
            used -= 1

        servers: list[Any] = [Listed(10, 10), Listed(10, 3_000), Listed(10, 10)]
        await asyncio.gather(*(list_pages(each, "/api/v1/pods", {}, take, 1, gate) for each in servers))

    asyncio.run(run())
    assert together == [1] * 6


def test_no_decoded_page_is_kept_while_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Decoded(dict[str, Any]):
        """A dict that can be referenced weakly."""

    alive: weakref.WeakValueDictionary[int, Decoded] = weakref.WeakValueDictionary()

    def decoded(*arguments: Any) -> Decoded:
        alive[id(arguments)] = found = Decoded(parsed(*arguments))
        most.append(len(alive))
        return found

    async def take(_: Any, is_first: bool) -> None:
        await asyncio.sleep(0)

    async def run() -> None:
        gate = asyncio.Lock()
        servers: list[Any] = [Listed(*[10] * 4) for _ in range(5)]
        await asyncio.gather(*(list_pages(each, "/api/v1/pods", {}, take, 1, gate) for each in servers))

    most: list[int] = []
    monkeypatch.setattr(pages, "parsed", decoded)
    asyncio.run(run())
    assert most == [1] * 20


class Chunks(ApiServer):
    """An API server whose watch sends these pieces; `locked` is the state of the gate before each."""

    def __init__(self, gate: asyncio.Lock, *pieces: bytes) -> None:
        super().__init__(ClientConfig())
        self._gate, self._pieces, self.locked = gate, pieces, list[bool]()

    async def chunks(self, *_: Any) -> AsyncGenerator[bytes, None]:
        for piece in self._pieces:
            self.locked.append(self._gate.locked())
            yield piece


def lines_of(*pieces: bytes) -> tuple[list[bytes], list[bool]]:
    """Return the lines of a watch that sends `pieces`, and whether the gate was held before each piece."""

    async def run() -> tuple[list[bytes], list[bool]]:
        gate = asyncio.Lock()
        server, found = Chunks(gate, *pieces), list[bytes]()
        async for lines in server.lines("/api/v1/pods", {}, 1.0, gate):
            found += lines
        assert not gate.locked()
        return found, server.locked

    return asyncio.run(run())


def test_lines_are_put_together_from_pieces() -> None:
    assert lines_of(b"on", b"e\ntwo\nth", b"ree\n")[0] == [b"one", b"two", b"three"]


def test_gate_is_held_while_a_long_line_arrives() -> None:
    long = b"x" * (PAGE_BYTES + 1)
    lines, locked = lines_of(b"a\n" + long, b"y", b"z\n", b"b\n")
    assert lines == [b"a", long + b"yz", b"b"]
    assert locked == [False, False, True, False]


def test_line_of_3_mib_arrives_without_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert lines_of(b"x" * (3 * 1024 * 1024), b"y", b"z\n")[1] == [False, False, True]


def test_line_beyond_every_bound_ends_the_watch() -> None:
    with pytest.raises(TooLargeError):
        lines_of(*[b"x" * OBJECT_BYTES] * 2)
