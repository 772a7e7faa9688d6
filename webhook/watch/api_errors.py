"""Errors of the API server, and the bodies of its responses."""

from typing import Any

import aiohttp
import orjson

from webhook.documents.documents import field


class ApiServerError(Exception):
    """A request to the API server failed. `code` is the HTTP status, 0 if there is none.

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


_SWITCHING_PROTOCOLS = 101
JsonObject = dict[str, Any]

_LONGEST_ERROR_BYTES = 16_384
_LONGEST_TEXT = 300


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
            raise TooLargeError(f"GET {response.url.path}: the response is larger than {most_bytes} bytes")
    return b"".join(chunks)


def parsed(method: str, path: str, body: bytes) -> JsonObject:
    """Return the object in the body of a response.

    Raises:
        ApiServerError: it is no JSON object.
    """
    try:
        content = orjson.loads(body)
    except ValueError as error:
        raise ApiServerError(f"{method} {path}: the response is incomplete: {message_of(error)}") from error
    if not isinstance(content, dict):
        raise ApiServerError(f"{method} {path}: the response is not an object")
    return content


async def read_status(response: aiohttp.ClientResponse) -> JsonObject:
    """Return the Status in `response`; empty if there is none."""
    return _status_in(await _read_error(response))


async def read_failure(response: aiohttp.ClientResponse) -> str:
    """Return what a failure says: the message of its Status, else its text (of a kubelet or proxy), else the reason."""
    body = await _read_error(response)
    text = " ".join(body.decode("utf-8", "replace").split())[:_LONGEST_TEXT]
    return str(field(_status_in(body), "message") or text or response.reason)


async def _read_error(response: aiohttp.ClientResponse) -> bytes:
    """Return the beginning of the body, as far as it arrives, and close the response."""
    body = b""
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= _LONGEST_ERROR_BYTES:
                break
    except (aiohttp.ClientError, TimeoutError, OSError):
        pass
    finally:
        response.close()
    return body[:_LONGEST_ERROR_BYTES]


def _status_in(body: bytes) -> JsonObject:
    try:
        content = orjson.loads(body)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def causes_of(status: JsonObject) -> frozenset[str]:
    """Return the machine-readable causes of a Status."""
    causes = field(status, "details", "causes")
    return frozenset(str(field(each, "reason")) for each in causes) if isinstance(causes, list) else frozenset()


def message_of(error: BaseException) -> str:
    """Return the text of the error; its class if it has none."""
    return str(error) or type(error).__name__


async def raise_refused(response: aiohttp.ClientResponse) -> None:
    """Raise the failure of a request to switch protocols, if it is one."""
    if response.status != _SWITCHING_PROTOCOLS:
        path, message = response.url.path, await read_failure(response)
        raise ApiServerError(f"GET {path}: {response.status} {message}", response.status)
