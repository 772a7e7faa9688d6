"""Make text of objects safe to print: without terminal control characters, and of bounded length."""

import json
import re
from typing import Any

import orjson

# Control characters (C0, DEL, C1), characters that a terminal hides or reorders (bidirectional marks, joiners, line
# and paragraph separators, tags), and halves of surrogate pairs.
_UNSAFE_CLASS = (
    "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[\x00-\x1f{_UNSAFE_CLASS}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x09\x0b-\x1f{_UNSAFE_CLASS}]")


def printable(text: str) -> str:
    r"""Return `text` on one line, with unsafe characters as escapes (`\x1b`, `\n`)."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return `text` with unsafe characters except line breaks as escapes."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def escaped_json(document: str) -> str:
    r"""Return the JSON or double-quoted YAML `document` with unsafe characters as `\u` escapes; its value is the same.

    Line feeds between tokens are kept; tabs and carriage returns become spaces.
    """
    return _UNSAFE_IN_LINES.sub(_escape_json, document)


def safe_json(document: bytes) -> bytes:
    """Return the JSON `document` with unsafe characters as escapes, like `escaped_json`."""
    if document.isascii() and document.decode().replace("\n", "").isprintable():
        return document
    return escaped_json(document.decode("utf-8", "replace")).encode()


def json_bytes(value: Any, option: int = 0) -> bytes:
    """Return `value` as JSON with unsafe characters as escapes. `option` is an option of orjson."""
    try:
        return safe_json(orjson.dumps(value, option=option))
    except orjson.JSONEncodeError:  # half of a surrogate pair, or nested deeply
        return json.dumps(value, separators=(",", ":")).encode()


def cut(text: str, limit: int) -> str:
    """Return `text`, cut with an ellipsis if it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return " "
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
