"""Texts of objects made fit to be shown: nothing in them can command a terminal, and their length has a bound."""

import json
import re
from typing import Any

import orjson

# Control characters (C0, DEL, C1), what a terminal does not show or shows in another order (bidirectional marks,
# joiners, line and paragraph separators, tags), and halves of surrogate pairs.
_UNSAFE_CLASS = (
    "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[\x00-\x1f{_UNSAFE_CLASS}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x09\x0b-\x1f{_UNSAFE_CLASS}]")


def printable(text: str) -> str:
    r"""Return `text` on one line, with each character that could command a terminal as an escape (`\x1b`, `\n`)."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return `text` likewise, with its line breaks kept."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def escaped_json(document: str) -> str:
    r"""Return the JSON or double-quoted YAML `document` with those characters as `\u` escapes: the same value.

    Between the tokens JSON has only spaces, tabs and line breaks; of these, line feeds stay and the others become
    spaces.
    """
    return _UNSAFE_IN_LINES.sub(_escape_json, document)


def safe_json(document: bytes) -> bytes:
    """Return the JSON `document` with those characters as escapes, as `escaped_json`."""
    if document.isascii() and document.decode().replace("\n", "").isprintable():
        return document
    return escaped_json(document.decode("utf-8", "replace")).encode()


def json_bytes(value: Any, option: int = 0) -> bytes:
    """Return `value` as JSON, likewise. `option` is one of orjson's."""
    try:
        return safe_json(orjson.dumps(value, option=option))
    except orjson.JSONEncodeError:  # half of a surrogate pair, or nested deeply
        return json.dumps(value, separators=(",", ":")).encode()


def cut(text: str, limit: int) -> str:
    """Return `text`, its end replaced by an ellipsis where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return " "
    if code < 0x10000:
        return f"\\u{code:04x}"
    return "\\u{:04x}\\u{:04x}".format(*_surrogates(code))


def _surrogates(code: int) -> tuple[int, int]:
    return 0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)
