"""Paths in raw objects: `spec.tasks.*.template`, where `*` stands for each item of a list or each value of a map."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid

STAR = "*"
_SEGMENT = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
# The largest int32, as in the API.
_LARGEST_COUNT = 2**31 - 1

Key = str | int


class Match(NamedTuple):
    """A value found at a path, or None if it is absent. `keys` are the keys and indices that the stars matched."""

    path: str
    keys: tuple[Key, ...]
    value: Any


@lru_cache(maxsize=512)
def segments(path: str) -> tuple[str, ...]:
    """Return the keys of `path`. A key that contains dots is in brackets: `metadata.annotations[example.com/a]`."""
    return tuple(found.group(1) or found.group(2) for found in _SEGMENT.finditer(path))


def matches(content: JsonObject, path: str) -> Iterator[Match]:
    """Yield the values at `path` in `content`.

    A path without a star yields exactly one match, also for an absent value.

    A star under an absent value has no match.

    Raises:
        InvalidInput: a parent of the value is not an object, or the value at a star is neither a list nor a map.
    """
    found: Iterator[Match] = iter((Match("", (), content),))
    for segment in segments(path):
        found = _each(found) if segment == STAR else _inner(found, segment)
    return found


def value_at(content: JsonObject, path: str, keys: tuple[Key, ...]) -> Match:
    """Return the value at `path` with its stars replaced by `keys`.

    Raises:
        InvalidInput: a parent of the value has another type.
    """
    where, left = "", iter(keys)
    value: Any = content
    for segment in segments(path):
        key = next(left) if segment == STAR else segment
        _check_parent(where, value, key)
        if isinstance(key, int):
            value = value[key] if value is not None and key < len(value) else None
        else:
            value = None if value is None else value.get(key)
        where = _join(where, key)
    return Match(where, keys, value)


def count_at(content: JsonObject, path: str, keys: tuple[Key, ...]) -> int | None:
    """Return the integer at `path`, or None if it is absent. In an annotation, the integer is a string.

    Raises:
        InvalidInput: the value is not an integer from 0 to 2147483647.
    """
    where, _, value = value_at(content, path, keys)
    if value is None:
        return None
    count = value
    if "[" in path and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11:
        count = int(value)
    if type(count) is not int or not 0 <= count <= _LARGEST_COUNT:
        raise InvalidInput([invalid(where, value, f"must be an integer from 0 to {_LARGEST_COUNT}")])
    return count


def _inner(found: Iterator[Match], key: str) -> Iterator[Match]:
    for path, keys, value in found:
        _check_parent(path, value, key)
        yield Match(_join(path, key), keys, None if value is None else value.get(key))


def _each(found: Iterator[Match]) -> Iterator[Match]:
    for path, keys, value in found:
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield Match(_join(path, key), (*keys, key), item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield Match(_join(path, index), (*keys, index), item)
        elif value is not None:
            raise InvalidInput([invalid(path, value, "must be a list or an object")])


def _check_parent(path: str, value: Any, key: Key) -> None:
    if value is not None and not isinstance(value, list if isinstance(key, int) else Mapping):
        raise InvalidInput([invalid(path, value, "must be a list" if isinstance(key, int) else "must be an object")])


def _join(path: str, key: Key) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key
