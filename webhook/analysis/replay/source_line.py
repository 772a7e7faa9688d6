"""The error of a line of a source that cannot be read."""

from collections.abc import Callable
from dataclasses import replace

from webhook.documents.field import FieldError, invalid

OnInvalid = Callable[[FieldError], None]

_SHOWN_BYTES = 60


def unreadable_line(place: str, line: bytes, wanted: str, error: str) -> FieldError:
    """Return the error of a line that is not `wanted`, such as `an audit record`."""
    shown = line[:_SHOWN_BYTES].decode("utf-8", "replace")
    is_cut_off = not line.rstrip().endswith(b"}")
    problem = "the line was cut off" if is_cut_off else f"must be {wanted}: {error}"
    return invalid(place, shown, f"{problem}; delete the line")


def skippable(error: FieldError) -> FieldError:
    """Return the error of a line, with the flag that leaves such lines out."""
    return replace(error, detail=f"{error.detail}, or leave such lines out with --skip-invalid")
