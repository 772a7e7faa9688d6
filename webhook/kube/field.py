"""Errors of input, worded as the API server words them: `where: what: value; remedy`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

Reason = Literal["Invalid value", "Required value", "Unsupported value", "Duplicate value", "Forbidden"]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong.

    `path` is the field as a user would look for it (`spec.tolerations[0].key`), with the file and document before
    it where there is one. `detail` says what would be valid.

    Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go
    """

    path: str
    reason: Reason
    value: object
    detail: str

    def __str__(self) -> str:
        if self.reason in ("Required value", "Forbidden"):
            return f"{self.path}: {self.reason}: {self.detail}"
        return f"{self.path}: {self.reason}: {shown(self.value)}; {self.detail}"

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
    """`value` as JSON, cut to `limit` characters, so that an error stays one readable line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
