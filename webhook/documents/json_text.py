"""JSON that is read in parts, and its errors."""

import json
import re
from io import BytesIO
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO

import orjson
from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from webhook.documents.field import InvalidInput, invalid


class NotAListError(Exception):
    """The text has to be parsed as a whole."""


class JsonList(Struct, gc=False):
    """A JSON object with a list `items`, whose items are not decoded yet."""

    items: list[Raw]
    kind: str
    api_version: str = field(default="v1", name="apiVersion")


_LISTS = Decoder(JsonList)


def read_list(file: BinaryIO) -> JsonList:
    """Return the list in `file`, which is mapped into memory and not read.

    Raises:
        NotAListError: the file holds something else.
    """
    try:
        text = file.getbuffer() if isinstance(file, BytesIO) else mmap(file.fileno(), 0, access=ACCESS_READ)
        return _LISTS.decode(text)
    except (ValueError, RecursionError) as error:  # ValueError: an empty file cannot be mapped
        raise NotAListError from error


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


DEEPEST = 200
"""The most levels of a value, in JSON and in YAML."""

# JSON of a program has each key once. Only smaller, maybe handwritten, text is checked for duplicate keys.
_HAND_WRITTEN_CHARACTERS = 1024 * 1024

_END_OF_BLANKS = re.compile(r"\S|\Z")


def read_json(text: str) -> list[Any] | None:
    """Return the values of a JSON stream; None if `text` is not JSON.

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
            raise ValueError(f"nested deeper than {DEEPEST} levels") from error
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
