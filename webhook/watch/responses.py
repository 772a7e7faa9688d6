"""Read the body of a response, and the Status of an error."""

from typing import Any

import aiohttp
import orjson

from webhook.kube.documents import field
from webhook.watch.api_errors import TooLargeError

JsonObject = dict[str, Any]

_LONGEST_ERROR_BYTES = 16_384


async def read_body(response: aiohttp.ClientResponse, most_bytes: int | None) -> bytes:
    """Return the body.

    Raises:
        TooLargeError: it is larger than `most_bytes`.
    """
    if most_bytes is None:
        return await response.read()
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most_bytes:
            raise TooLargeError(f"GET {response.url.path}: the response is larger than {most_bytes} bytes")
    return body


async def read_status(response: aiohttp.ClientResponse) -> JsonObject:
    """Return the Status in `response`; empty if there is none."""
    try:
        content = orjson.loads(await response.content.read(_LONGEST_ERROR_BYTES))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        content = None
    finally:
        response.close()
    return content if isinstance(content, dict) else {}


def causes_of(status: JsonObject) -> frozenset[str]:
    """Return the machine-readable causes of a Status."""
    causes = field(status, "details", "causes")
    return frozenset(str(field(each, "reason")) for each in causes) if isinstance(causes, list) else frozenset()


def message_of(error: BaseException) -> str:
    """Return the text of the error; its class if it has none."""
    return str(error) or type(error).__name__
