"""Errors of input, worded as the API server words them: `where: what: value; remedy`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from webhook.kube.text import cut, printable

Reason = Literal["Invalid value", "Required value", "Unsupported value", "Duplicate value", "Forbidden"]


# A path may hold a key of the user's, and a detail one of his values. What the API server accepts is shorter.
_PATH_LIMIT = 1024
_DETAIL_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong. As text it is one short line, whatever the object holds.

    `path` is the field as a user would look for it (`spec.tolerations[0].key`), with the file and document before
    it where there is one. `detail` says what would be valid.

    Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go
    """

    path: str
    reason: Reason
    value: object
    detail: str

    def __str__(self) -> str:
        value = "" if self.reason in ("Required value", "Forbidden") else f"{shown(self.value)}; "
        return printable(f"{cut(self.path, _PATH_LIMIT)}: {self.reason}: {value}{cut(self.detail, _DETAIL_LIMIT)}")

    def under(self, place: str) -> "FieldError":
        """The same error with `place` (a file, a document, a parent field) before its path."""
        return replace(self, path=f"{place}: {self.path}" if self.path else place)

    def within(self, place: str, outer: str) -> "FieldError":
        """The same error under `place`, its path without the leading `outer`, which the reader does not know."""
        return replace(self, path=self.path.removeprefix(outer).removeprefix(".")).under(place)


class InvalidInput(Exception):  # noqa: N818 - named after what it tells, as field.Invalid is
    """Something a user gave is wrong; carries every error found, not the first."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


# So many errors of one object are told: somebody may send a million.
MOST_ERRORS = 100


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A value of the right type that is not valid."""
    return FieldError(path, "Invalid value", value, detail)


def required(path: str, detail: str) -> FieldError:
    """A value that is missing."""
    return FieldError(path, "Required value", None, detail)


def unsupported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """A value that is none of the listed ones."""
    return FieldError(path, "Unsupported value", value, "supported values: " + ", ".join(f'"{s}"' for s in supported))


def forbidden(path: str, detail: str) -> FieldError:
    """A value that this user may not set."""
    return FieldError(path, "Forbidden", None, detail)


def shown(value: Any, limit: int = 120) -> str:
    """Return `value` as JSON, cut to `limit` characters, so that an error stays one readable line.

    Only as much of the value is rendered as is shown.
    """
    text = ""
    try:
        for piece in _json_pieces(value, limit):
            text += piece
            if len(text) > limit:
                return text[: limit - 1] + "…"
    except (TypeError, ValueError):
        return type(value).__name__
    return text


def _json_pieces(value: Any, limit: int) -> Iterator[str]:
    """Yield the JSON of `value` piece by piece, of a text as much as `limit` characters hold.

    Raises:
        TypeError: JSON cannot hold a part of it.
        ValueError: a number has too many digits to be written.
    """
    if isinstance(value, str):
        yield json.dumps(value[: limit + 1], ensure_ascii=False)
    elif isinstance(value, Mapping):
        comma = "{"
        for key, item in value.items():
            text = key[: limit + 1] if isinstance(key, str) else json.dumps(key)
            yield f"{comma}{json.dumps(text, ensure_ascii=False)}: "
            yield from _json_pieces(item, limit)
            comma = ", "
        yield "}" if comma == ", " else "{}"
    elif isinstance(value, list | tuple):
        comma = "["
        for item in value:
            yield comma
            yield from _json_pieces(item, limit)
            comma = ", "
        yield "]" if comma == ", " else "[]"
    else:
        yield json.dumps(value)
