"""Read parts of unvalidated objects. A value that is absent or has another type is read as empty."""

from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import OBJECT, JsonObject, field, parse
from webhook.documents.field import InvalidInput

# Configuration files have no aliases.
_MOST_ALIASED = 1000


def texts(content: Mapping[str, Any], *path: str) -> dict[str, str]:
    """Return the map of texts at `path`, or an empty one if there is none."""
    found = field(content, *path)
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def listed(content: Mapping[str, Any], *path: str) -> list[JsonObject]:
    """Return the objects in the list at `path`, or an empty list if there is no list."""
    found = field(content, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def items_at(content: Mapping[str, Any], *path: str) -> list[Any]:
    """Return the list at `path`, or an empty one if there is none."""
    found = field(content, *path)
    return found if isinstance(found, list) else []


def object_at(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at `path`, or an empty one if there is none."""
    found = field(content, *path)
    return found if found and isinstance(found, OBJECT) else {}


def file_in(config_map: Mapping[str, Any], name: str) -> JsonObject:
    """Return the object in the file `name` of a ConfigMap, or an empty one if it is absent or not valid."""
    text = field(config_map, "data", name)
    try:
        found = parse(text, name, _MOST_ALIASED) if isinstance(text, str) else []
    except InvalidInput:
        return {}
    return found[0].content if len(found) == 1 else {}
