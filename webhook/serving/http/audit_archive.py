"""The audit file of this replica as an archive, on the admin port."""

import asyncio
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web

from webhook.audit.archive import write_archive
from webhook.audit.selection import parse_moment
from webhook.audit.writer import STANDARD_OUTPUT
from webhook.documents.field import InvalidInput

# A client that takes nothing for so long is disconnected: a thread waits for it.
_SILENCE_SECONDS = 30.0
_PIECE_BYTES = 64 * 1024


class AuditArchive:
    """Sends the audit file at `path`, its rotated files and its head as `audit export` prints them, one at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_busy = False

    async def send(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send the archive; `?since=` is that of `audit export`.

        Raises:
            HTTPException: there is no file, `since` is invalid, or an archive is being sent.
        """
        if request.method != hdrs.METH_GET:
            raise web.HTTPMethodNotAllowed(request.method, [hdrs.METH_GET])
        if self._path == STANDARD_OUTPUT:
            raise web.HTTPNotFound(text="the records are printed: read the log of the container\n")
        if self._is_busy:
            raise web.HTTPServiceUnavailable(text="another archive is being sent; try again\n")
        try:
            since = parse_moment(text, datetime.now(UTC), "since") if (text := request.query.get("since")) else None
        except InvalidInput as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        self._is_busy = True
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
            await response.prepare(request)
            await asyncio.to_thread(self._write, _Output(response, asyncio.get_running_loop()), since)
            return response
        finally:
            self._is_busy = False

    def _write(self, output: "_Output", since: datetime | None) -> None:
        with io.BufferedWriter(output, _PIECE_BYTES) as buffered:
            write_archive(Path(self._path), buffered, since)


class _Output(io.RawIOBase):
    """Writes to a response from another thread, as fast as the client reads."""

    def __init__(self, response: web.StreamResponse, loop: asyncio.AbstractEventLoop) -> None:
        self._response = response
        self._loop = loop

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        writing = asyncio.wait_for(self._response.write(bytes(data)), _SILENCE_SECONDS)
        asyncio.run_coroutine_threadsafe(writing, self._loop).result()
        return len(data)
