"""Read a list in pages that are limited by bytes, since users decide how large an object is."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from webhook.documents.documents import field
from webhook.watch.api_errors import OBJECT_BYTES, PAGE_BYTES, ApiServerError, TooLargeError, parsed
from webhook.watch.api_server import GONE, ApiServer, JsonObject, Query

OnPage = Callable[[list[JsonObject], bool], Awaitable[None]]


async def list_pages(
    server: ApiServer, path: str, query: Query, on_page: OnPage, page_size: int, gate: asyncio.Lock | None = None
) -> str:
    """Call `on_page` with the items of each page, and true for the first page; return the resourceVersion of the list.

    A page with more than PAGE_BYTES is requested again with half the objects, down to one. `gate` is held while a page
    is decoded and used: lists that share it have one decoded page in memory. The request has no resourceVersion: the
    list is the most recent state, never older than an earlier one. If the server answers 410 Gone to a continue token,
    the list starts again, once.

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
            content = parsed("GET", path, body)
            del body
            items = content.get("items")
            await on_page(items if isinstance(items, list) else [], not token)
        token = str(field(content, "metadata", "continue") or "")
        if not token:
            return str(field(content, "metadata", "resourceVersion") or "")
        # A decoded page takes twenty times its bytes: none is kept while the next one is read, without the gate.
        del content, items


async def _read(server: ApiServer, path: str, query: Query, held: AsyncExitStack, gate: asyncio.Lock) -> bytes | None:
    """Return a page, with `gate` held; None if fewer objects have to be asked for."""
    try:
        body = await server.body(path, query, PAGE_BYTES)
    except TooLargeError:
        if int(query["limit"]) > 1:
            return None
        await held.enter_async_context(gate)
        return await server.body(path, query, OBJECT_BYTES)
    await held.enter_async_context(gate)
    return body
