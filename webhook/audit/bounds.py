"""Truncate values so that no record exceeds 64 KiB. `… (N more characters)` ends a text; `truncated` lists it."""

import bisect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from webhook.documents.text import cut, printable, safe_json

TEXT_BYTES = 1024
"""The maximum size of one text in JSON, without its quotes and the truncation mark."""

SHORT = TEXT_BYTES // 6
"""A text of this many characters always fits: JSON writes a character with six bytes at most."""

_FEW = 64  # Up to this many items are serialized to learn their size. A walk over the items costs ten times as much.

_SCALAR_BYTES = 24  # a number, true or null
_MOST_LEVELS = 32
_MOST_NOTES = 16
_NOTE_CHARACTERS = 80
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Truncator:
    """Truncates the values of one record, each text to `text_bytes`. Each record needs its own instance."""

    def __init__(self, truncated_before: Iterable[str] = (), text_bytes: int = TEXT_BYTES) -> None:
        self._before = [*truncated_before]
        self._text_bytes = text_bytes
        self._notes: list[str] = []
        self._more_notes = 0
        self._path: list[str | int] = []
        self._left_bytes = 0

    @property
    def truncated(self) -> list[str]:
        """Return the places where content was left out, each with the amount, or none if the record is complete."""
        more = [f"and {_more(self._more_notes, 'place')}"] if self._more_notes else []
        return self._before + self._notes + more

    def text(self, place: str, text: str) -> str:
        """Return `text`, the value of the field `place`, truncated to `text_bytes` of JSON."""
        if 6 * len(text) <= self._text_bytes:
            return text
        self._path = [place]
        return self._fit_string(text)

    def items_json(self, place: str, value: Sequence[Any] | Mapping[str, Any], most_bytes: int) -> bytes:
        """Return the JSON of the field `place`, truncated and without its last items to fit in `most_bytes`."""
        if not value:
            return dump(value)
        items = value.values() if isinstance(value, Mapping) else value
        if len(value) <= _FEW and not any(isinstance(item, str) and len(item) > most_bytes for item in items):
            data = dump(value)
            if len(data) <= most_bytes:
                return data
        self._path = [place]
        self._left_bytes = most_bytes
        return dump(self._fit(value))

    def _fit(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._fit_string(value)
        if len(self._path) > _MOST_LEVELS:
            self._note(f"nested deeper than {_MOST_LEVELS} levels")
            return "…"
        if isinstance(value, Mapping):
            return self._fit_object(value)
        if isinstance(value, list | tuple):
            return self._fit_items(value)
        self._left_bytes -= _SCALAR_BYTES
        return value

    def _fit_string(self, text: str) -> str:
        most_bytes = self._text_bytes
        size_bytes = len(dump(text)) if len(text) <= most_bytes else most_bytes + 3
        if size_bytes > most_bytes + 2:
            kept = bisect.bisect_right(range(most_bytes + 1), most_bytes + 2, key=lambda end: len(dump(text[:end]))) - 1
            left_out = _more(len(text) - kept, "character")
            self._note(left_out)
            text = f"{text[:kept]}… ({left_out})"
        self._left_bytes -= size_bytes + 1
        return text

    def _fit_object(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        self._left_bytes -= 3
        fitted: dict[str, Any] = {}
        for key, item in value.items():
            if self._left_bytes <= 0:
                self._note(_more(len(value) - len(fitted), "item"))
                break
            self._path.append(str(key))
            fitted[self._fit_string(str(key))] = self._fit(item)
            self._path.pop()
        return fitted

    def _fit_items(self, value: Sequence[Any]) -> list[Any]:
        self._left_bytes -= 3
        fitted: list[Any] = []
        for index, item in enumerate(value):
            notes, more_notes = len(self._notes), self._more_notes
            has_room = self._left_bytes > 0
            self._path.append(index)
            candidate = self._fit(item) if has_room else None
            self._path.pop()
            # An item is kept complete, unless it is the only one: half a patch operation would mislead.
            if not has_room or (self._left_bytes <= 0 and fitted):
                del self._notes[notes:]
                self._more_notes = more_notes
                self._note(_more(len(value) - index, "item"))
                break
            fitted.append(candidate)
        return fitted

    def _note(self, left_out: str) -> None:
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(f"{cut(printable(self._place()), _NOTE_CHARACTERS)}: {left_out}")
        else:
            self._more_notes += 1

    def _place(self) -> str:
        text = str(self._path[0])
        for part in self._path[1:]:
            key = cut(str(part), _NOTE_CHARACTERS)
            is_plain = isinstance(part, str) and _PLAIN_KEY.fullmatch(key)
            text += f".{key}" if is_plain else f"[{key}]"
        return text


def _more(count: int, noun: str) -> str:
    return f"{count} more {noun}" if count == 1 else f"{count} more {noun}s"


def dump(value: object) -> bytes:
    r"""Return `value` as JSON, with terminal control characters as `\u` escapes."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair (from an exception's text) or an integer over 64 bits. An inexact value is better
        # than none.
        text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
        data = text.encode("utf-8", "replace")
    return data if data.isascii() and b"\x7f" not in data else safe_json(data)
