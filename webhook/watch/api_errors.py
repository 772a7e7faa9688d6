"""Errors of the API server, and response bodies with size limits, because users decide how large an object is."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

import aiohttp
import orjson

from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed


class ApiServerError(Exception):
    """A request to the API server failed. `code` is the HTTP status, or 0 if there is none.

    `causes` are the machine-readable causes of the Status, such as `NamespaceTerminating`.
    """

    def __init__(self, message: str, code: int = 0, causes: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.code = code
        self.causes = causes


class TooLargeError(ApiServerError):
    """The response is larger than the caller reads."""


class UnreachableError(ApiServerError):
    """The API server did not respond to a request."""


async def is_accepted(request: Awaitable[object], *refusals: int) -> bool:
    """Return whether the API server accepts `request`, or false if it responds with one of `refusals`.

    Raises:
        ApiServerError: the request failed for another reason, or timed out.
    """
    try:
        await request
    except ApiServerError as error:
        if error.code not in refusals:
            raise
        return False
    return True


# 100 ordinary pods have about 1 MiB. Decoded, dense JSON takes twenty times as much.
PAGE_BYTES = 3 * 1024 * 1024
"""The bytes of a page or an event; each reader may hold one."""
# A request has at most 3 MiB, and JSON escapes a character with up to six bytes.
# Source: k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes
OBJECT_BYTES = 20 * 1024 * 1024
"""The bytes of an event, or of a page with one object."""

_LONGEST_ERROR_BYTES = 16_384


async def read_body(response: aiohttp.ClientResponse, most_bytes: int | None) -> bytes:
    """Return the body.

    Raises:
        TooLargeError: it is larger than `most_bytes`.
    """
    if most_bytes is None:
        return await response.read()
    chunks, size_bytes = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > most_bytes:
            raise TooLargeError(
                f"{response.method} {response.url.path}: the response is larger than {most_bytes} bytes"
            )
    return b"".join(chunks)


async def lines_of(chunks: AsyncIterator[bytes], path: str, gate: asyncio.Lock) -> AsyncGenerator[list[bytes], None]:
    """Yield batches of the lines in `chunks`. Each list is cleared after its use, so that an idle watch keeps no lines.

    `gate` is held while a line longer than PAGE_BYTES is read and used, so that few such lines are in memory.

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


def parsed(method: str, path: str, body: bytes) -> JsonObject:
    """Return the object in the body of a response.

    Raises:
        ApiServerError: the body is not a JSON object.
    """
    try:
        content = orjson.loads(body)
    except ValueError as error:
        raise ApiServerError(f"{method} {path}: the response is incomplete: {message_of(error)}") from error
    if not isinstance(content, dict):
        raise ApiServerError(f"{method} {path}: the response is not an object")
    return content


async def refusal(method: str, path: str, response: aiohttp.ClientResponse) -> ApiServerError:
    """Return the error that `response` reports, from its Status if it has one."""
    status = status_in(await _read_error(response))
    reasons = {str(each.get("reason")) for each in listed(status, "details", "causes")}
    message = field(status, "message") or response.reason
    return ApiServerError(f"{method} {path}: {response.status} {message}", response.status, frozenset(reasons))


async def _read_error(response: aiohttp.ClientResponse) -> bytes:
    """Return the part of the body that arrives, up to a limit, and close the response."""
    body = b""
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= _LONGEST_ERROR_BYTES:
                break
    except (aiohttp.ClientError, OSError):
        pass
    finally:
        response.close()
    return body[:_LONGEST_ERROR_BYTES]


def status_in(body: bytes) -> JsonObject:
    """Return the Status in a body, or an empty object if the body is not a Status."""
    try:
        content = orjson.loads(body)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def message_of(error: BaseException) -> str:
    """Return the text of the error, or its class if it has no text."""
    return str(error) or type(error).__name__
