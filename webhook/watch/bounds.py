"""Bounds of what is read at once, since users decide how large an object is."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from webhook.watch.api_errors import ApiServerError, TooLargeError

# 100 ordinary pods have about 1 MiB. Decoded, dense JSON takes twenty times as much.
PAGE_BYTES = 3 * 1024 * 1024
"""The bytes of a page or an event; each reader may hold one."""
# A request has at most 3 MiB, and JSON escapes a character with up to six bytes.
# Source: k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes
OBJECT_BYTES = 20 * 1024 * 1024
"""The bytes of an event, or of a page with one object."""


async def lines_of(chunks: AsyncIterator[bytes], path: str, gate: asyncio.Lock) -> AsyncGenerator[list[bytes], None]:
    """Yield batches of the lines in `chunks`. The list is cleared afterwards: an idle watch keeps no line.

    `gate` is held while a line longer than PAGE_BYTES is read and used, so that few are in memory.

    Raises:
        ApiServerError: the last line has no end.
        TooLargeError: a line is longer than OBJECT_BYTES.
    """
    rest, is_held = bytearray(), False
    try:
        async for chunk in chunks:
            first, *others = chunk.split(b"\n")
            rest += first
            if others:
                lines, rest = [bytes(rest), *others[:-1]], bytearray(others[-1])
                yield lines
                lines.clear()
                if is_held:
                    is_held = False
                    gate.release()
            elif len(rest) > OBJECT_BYTES:
                raise TooLargeError(f"GET {path}: a line is larger than {OBJECT_BYTES} bytes")
            elif len(rest) > PAGE_BYTES and not is_held:
                is_held = await gate.acquire()
    finally:
        if is_held:
            gate.release()
    if rest:
        raise ApiServerError(f"GET {path}: the response ended within an object")
