"""Read a list in pages that are limited in bytes, because users decide how large an object is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from msgspec import DecodeError as JsonError
from msgspec import Raw, Struct
from msgspec.json import Decoder

from webhook.documents.documents import JsonObject, field
from webhook.watch.api_errors import OBJECT_BYTES, PAGE_BYTES, ApiServerError, TooLargeError, parsed
from webhook.watch.api_server import GONE, ApiServer, Query

OnPage = Callable[[list[Any], bool], Awaitable[None]]


class _Page(Struct, gc=False):
    metadata: JsonObject
    items: list[Raw]


_PAGES = Decoder(_Page)


async def list_pages(
    server: ApiServer,
    path: str,
    query: Query,
    on_page: OnPage,
    page_size: int,
    gate: asyncio.Lock | None = None,
    read_item: Callable[[Raw], Mapping[str, Any]] | None = None,
) -> str:
    """Call `on_page` with the items of each page and true for the first page. Return the resourceVersion of the list.

    An item is the result of `read_item` for its JSON. It is a raw API object without `read_item` or if this raises
    ValidationError.

    A page with more than PAGE_BYTES is requested again with half the objects, down to one. `gate` is held while a page
    is decoded and used, so that lists that share it have only one decoded page in memory. The request has no
    resourceVersion, so the list is the most recent state and never older than an earlier list. If the server answers
    410 Gone to a continue token, the list starts again once.

    Raises:
        ApiServerError: the list could not be read to its end.
    """
    gate, limit = gate or asyncio.Lock(), page_size
    token, has_expired = "", False
    while True:
        asked = {**query, "limit": limit, **({"continue": token} if token else {})}
        async with AsyncExitStack() as held:
            try:
                body = await _read(server, path, asked, held, gate)
            except ApiServerError as error:
                if error.code != GONE or not token or has_expired:
                    raise
                has_expired, token = True, ""
                continue
            if body is None:
                limit //= 2
                continue
            if 4 * len(body) < PAGE_BYTES:
                limit = min(2 * limit, page_size)
            metadata, items = _read_page(path, body, read_item)
            del body
            await on_page(items, not token)
        # A decoded page takes twenty times its bytes: none is kept while the next one is read, without the gate.
        del items
        token = str(field(metadata, "continue") or "")
        if not token:
            return str(field(metadata, "resourceVersion") or "")


def _read_page(
    path: str, body: bytes, read_item: Callable[[Raw], Mapping[str, Any]] | None
) -> tuple[JsonObject, list[Any]]:
    if read_item is not None:
        try:
            page = _PAGES.decode(body)
            return page.metadata, [read_item(each) for each in page.items]
        except (JsonError, UnicodeError, RecursionError):
            pass
    content = parsed("GET", path, body)
    metadata, items = content.get("metadata"), content.get("items")
    return metadata if isinstance(metadata, dict) else {}, items if isinstance(items, list) else []


async def _read(server: ApiServer, path: str, query: Query, held: AsyncExitStack, gate: asyncio.Lock) -> bytes | None:
    """Return a page, with `gate` held, or None if fewer objects must be requested."""
    try:
        body = await server.body(path, query, PAGE_BYTES)
    except TooLargeError:
        if int(query["limit"]) > 1:
            return None
        await held.enter_async_context(gate)
        return await server.body(path, query, OBJECT_BYTES)
    await held.enter_async_context(gate)
    return body
