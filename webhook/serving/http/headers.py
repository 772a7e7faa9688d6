"""Checks of the headers of a request, before its body is read."""

from functools import lru_cache

from aiohttp import web

JSON = "application/json"


@lru_cache(maxsize=64)
def check_json(content_type: str) -> None:
    """Check the Content-Type.

    Raises:
        HTTPUnsupportedMediaType: it is not JSON.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != JSON:
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type is {media_type or 'not given'}; must be {JSON}\n")


def check_identity(encoding: str) -> None:
    """Reject a compressed body: its decompressed size is unbounded, and API servers do not compress.

    Raises:
        HTTPUnsupportedMediaType: the Content-Encoding is not `identity`.
    """
    if encoding and encoding.strip().lower() != "identity":
        text = f"Content-Encoding is {encoding[:40]}; must be identity, or not given\n"
        raise web.HTTPUnsupportedMediaType(text=text)
