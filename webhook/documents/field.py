"""Input errors in the format of the API server: `path: reason: value; remedy`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from webhook.documents.text import cut, printable

Reason = Literal["Invalid value", "Required value", "Unsupported value", "Duplicate value", "Forbidden"]


# A path can contain a key of the user, and a detail a value. The API server accepts only shorter ones.
_PATH_LIMIT = 1024
_DETAIL_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field. As text it is one line of bounded length.

    `path` is the field as the user writes it (`spec.tolerations[0].key`), with the file and document before it
    if there is one. `detail` states the valid values.

    Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go
    """

    path: str
    reason: Reason
    value: object
    detail: str

    def __str__(self) -> str:
        value = "" if self.reason in ("Required value", "Forbidden") else f"{shown(self.value)}; "
        return printable(f"{cut(self.path, _PATH_LIMIT)}: {self.reason}: {value}{cut(self.detail, _DETAIL_LIMIT)}")

    def prefixed(self, place: str) -> "FieldError":
        """Return the error with `place` (a file, a document, a parent field) before its path."""
        return replace(self, path=f"{place}: {self.path}" if self.path else place)

    def relocated(self, place: str, outer: str) -> "FieldError":
        """Return the error with the prefix `outer` of its path, which the user does not know, replaced by `place`."""
        return replace(self, path=self.path.removeprefix(outer).removeprefix(".")).prefixed(place)


@dataclass(frozen=True, slots=True)
class RejectedFieldError(FieldError):
    """One invalid field, with the message of the API server.

    Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go, Error.ErrorBody
    """

    def __str__(self) -> str:
        value = "" if self.reason in ("Required value", "Forbidden") else f": {shown(self.value, _DETAIL_LIMIT)}"
        detail = self.detail and f": {cut(self.detail, _DETAIL_LIMIT)}"
        return printable(f"{cut(self.path, _PATH_LIMIT)}: {self.reason}{value}{detail}")


@dataclass(frozen=True, slots=True)
class RefusedObjectError(FieldError):
    """An object that the API server rejects as a whole. `detail` is the message of the API server."""

    def __str__(self) -> str:
        place = f"{cut(self.path, _PATH_LIMIT)}: " if self.path else ""
        return printable(f"{place}{cut(self.detail, _DETAIL_LIMIT)}")


def refused(resource: str, name: str, reason: str) -> FieldError:
    """Return the error of an object of `resource` (a plural) that an admission plugin of the API server rejects.

    Source: k8s.io/apimachinery/pkg/api/errors/errors.go, NewForbidden
    """
    return RefusedObjectError("", "Forbidden", None, f'{resource} "{name}" is forbidden: {reason}')


class InvalidInput(Exception):  # noqa: N818 - named like field.Invalid
    """Invalid input of a user, with every error found."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[tuple[FieldError, ...]]]:
        return type(self), (self.errors,)


@contextmanager
def prefixed_errors(place: str) -> Iterator[None]:
    """Raise the InvalidInput of the block with `place` (a file, a document) before the paths of its errors."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(each.prefixed(place) for each in error.errors) from error


BETWEEN_ERRORS = ";\n"


def lines_of(errors: Iterable[FieldError]) -> str:
    """Return `errors` one a line."""
    return BETWEEN_ERRORS.join(map(str, errors))


# The number of errors reported for one object: an object can have a million.
MOST_ERRORS = 100


def invalid(path: str, value: object, detail: str) -> FieldError:
    """Return the error of a value that is not valid."""
    return FieldError(path, "Invalid value", value, detail)


def required(path: str, detail: str) -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, "Required value", None, detail)


def unsupported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is not among `supported`."""
    return FieldError(path, "Unsupported value", value, "supported values: " + ", ".join(f'"{s}"' for s in supported))


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error of a value that the user may not set."""
    return FieldError(path, "Forbidden", None, detail)


def shown(value: Any, limit: int = 120) -> str:
    """Return `value` as JSON, rendered and cut to `limit` characters."""
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
    """Yield the JSON of `value` in pieces, with strings cut to `limit` characters."""
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
