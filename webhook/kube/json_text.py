"""Read JSON text, also several values one after the other."""

import json
import re
from typing import Any

import orjson

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
