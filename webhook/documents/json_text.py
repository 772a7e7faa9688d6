"""Read JSON, large lists in parts, and report its errors."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from webhook.documents.field import InvalidInput, invalid

_BLOCK_BYTES = 64 * 1024
# A list that is cut nowhere within so much of it is parsed as a whole.
_MOST_BYTES = 8 * 1024 * 1024
# The beginning of an object that looks like an item can be within one.
_CUTS = 8

_ITEMS = re.compile(rb'"items"\s*:\s*\[\s*(\{\s*"[^"\\]*")')


class NotAListError(Exception):
    """The text is not a list that can be read in parts, and must be parsed as a whole."""


class JsonList:
    """A JSON object that consists almost only of the list `items`. `content` is the object with an empty list.

    Programs write each item with the same first key, so the list can be cut before an item. A cut is correct if the
    text before it is a sequence of JSON values separated by commas.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Find the list in a file."""
        self._file = file
        head = file.read(_BLOCK_BYTES)
        found = _ITEMS.search(head)
        if found is None:
            raise NotAListError
        self._item_start = found[1]
        self._begin = head.index(b"[", found.start()) + 1
        tail_begin = max(self._begin, file.seek(0, 2) - _BLOCK_BYTES)
        file.seek(tail_begin)
        tail = file.read()
        end = tail.rfind(b"]")
        self._end = tail_begin + end
        try:
            # The number shows that these brackets are those of the items. Without a closing one, this is no JSON.
            content = orjson.loads(head[: self._begin] + b"0" + tail[end:])
        except orjson.JSONDecodeError:
            content = None
        if not isinstance(content, dict) or content.get("items") != [0]:
            raise NotAListError
        self.content: dict[str, Any] = {**content, "items": []}

    def items(self) -> Iterator[Any]:
        """Yield the items.

        Raises:
            NotAListError: the rest cannot be cut or is not JSON. Ignore the items yielded before.
        """
        self._file.seek(self._begin)
        left, text = self._end - self._begin, b""
        while left:
            block = self._file.read(min(_BLOCK_BYTES, left))
            left -= len(block)
            text += block
            if not block or len(text) > _MOST_BYTES:
                raise NotAListError
            items, text = self._cut(text) if left else (_values(text), b"")
            yield from items

    def _cut(self, text: bytes) -> tuple[list[Any], bytes]:
        """Return the items before a cut and the text after it, or no items and the whole text if no cut is found."""
        at = len(text)
        for _ in range(_CUTS):
            at = text.rfind(self._item_start, 0, at)
            comma = text.rfind(b",", 0, at) if at > 0 else -1
            if comma < 0:
                break
            if not text[comma + 1 : at].isspace() and comma + 1 < at:
                continue
            try:
                return _values(text[:comma]), text[comma + 1 :]
            except NotAListError:
                continue
        return [], text


def _values(text: bytes) -> list[Any]:
    try:
        values: list[Any] = orjson.loads(b"[%b]" % text)
    except orjson.JSONDecodeError as error:
        raise NotAListError from error
    return values


def read_body(body: bytes) -> Any:
    """Return the JSON value in the body of a request.

    Raises:
        InvalidInput: it is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        shown, where = body[:60].decode("utf-8", "replace"), f"line {error.lineno} column {error.colno}"
        raise InvalidInput([invalid("body", shown, f"must be JSON: {error.msg}: {where}")]) from error


# `orjson` writes 254 levels, and the outermost is the list of the values.
_DEEPEST = 253
# JSON of a program has each key once. Only smaller, maybe handwritten, text is checked for duplicate keys.
_HAND_WRITTEN_CHARACTERS = 1024 * 1024

_END_OF_BLANKS = re.compile(r"\S|\Z")


def read_json(text: str) -> list[Any] | None:
    """Return the values of a JSON stream, or None if `text` is not JSON.

    Raises:
        ValueError: a key is duplicated, or a value is nested too deeply.
    """
    try:
        values = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        found = _json_stream(text)
        if found is None:
            return None
        values = found
    if len(text) <= _HAND_WRITTEN_CHARACTERS:
        _json_stream(text, object_pairs_hook=_each_key_once)
    try:
        orjson.dumps(values)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"nested deeper than {_DEEPEST} levels") from error
    return values


def _json_stream(text: str, **hooks: Any) -> list[Any] | None:
    decoder, values, position = json.JSONDecoder(**hooks), [], 0
    try:
        while (position := _END_OF_BLANKS.search(text, position).start()) < len(text):  # type: ignore[union-attr] # it always matches
            _, end = decoder.raw_decode(text, position)
            values.append(orjson.loads(text[position:end]))
            position = end
    except (json.JSONDecodeError, RecursionError):
        return None
    return values


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r}")
    return content
