"""Read parts of unvalidated objects. A value that is absent or has another type is read as empty."""

from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import JsonObject, field


def texts(content: Mapping[str, Any], *path: str) -> dict[str, str]:
    """Return the map of texts at `path`, or an empty one if there is none."""
    found = field(content, *path)
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def listed(content: Mapping[str, Any], *path: str) -> list[JsonObject]:
    """Return the objects in the list at `path`, or an empty list if there is no list."""
    found = field(content, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
