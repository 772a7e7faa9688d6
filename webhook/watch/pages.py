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
    pages = _Pages(server, path, query, on_page, page_size, gate or asyncio.Lock())
    has_expired = False
    while True:
        try:
            await pages.next()
        except ApiServerError as error:
            if error.code != GONE or not pages.token or has_expired:
                raise
            has_expired, pages.token = True, ""
            continue
        if pages.is_complete:
            return pages.version


class _Pages:
    def __init__(
        self, server: ApiServer, path: str, query: Query, on_page: OnPage, page_size: int, gate: asyncio.Lock
    ) -> None:
        self._server, self._path, self._query, self._on_page = server, path, query, on_page
        self._limit = self._page_size = page_size
        self._gate = gate
        self.token = self.version = ""
        self.is_complete = False

    async def next(self) -> None:
        """Read the next page; only ask for less if it is too large."""
        query = {**self._query, "limit": self._limit, **({"continue": self.token} if self.token else {})}
        async with AsyncExitStack() as held:
            try:
                body = await self._server.body(self._path, query, PAGE_BYTES)
                await held.enter_async_context(self._gate)
            except TooLargeError:
                if self._limit > 1:
                    self._limit //= 2
                    return
                await held.enter_async_context(self._gate)
                body = await self._server.body(self._path, query, OBJECT_BYTES)
            if 4 * len(body) < PAGE_BYTES:
                self._limit = min(2 * self._limit, self._page_size)
            content = parsed("GET", self._path, body)
            del body
            items = content.get("items")
            await self._on_page(items if isinstance(items, list) else [], not self.token)
        self.token = str(field(content, "metadata", "continue") or "")
        self.version = str(field(content, "metadata", "resourceVersion") or "")
        self.is_complete = not self.token
