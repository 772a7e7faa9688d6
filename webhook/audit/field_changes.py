"""The fields that the patch of a record changes, and their values before and after.

A record does not contain the object. The part of the object that the patch changes is rebuilt from the replaced values
in the record. The previous items of a list to which the patch appends are not known.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from webhook.audit.replaced_values import value_at
from webhook.documents.documents import JsonObject
from webhook.kube.api.independent_patch import PatchError, independently_patched
from webhook.kube.api.json_patch import steps_of

UNKNOWN = "…"
"""A value that is replaced and that the record does not hold."""

_APPENDED = "-"
# An object that etcd stores has no longer list.
_MOST_DIGITS = 6
# Their keys are names, which can be numbers.
_MAPS = ("labels", "annotations")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class FieldChange(NamedTuple):
    """A changed field: its JSON pointer, and its value before and after, or None if there is none.

    `is_appended` is true if `after` contains only the items that are appended to a list.
    """

    pointer: str
    before: Any
    after: Any
    is_appended: bool = False


def field_changes(patch: Sequence[JsonObject], before: JsonObject) -> list[FieldChange]:
    """Return the changed fields, in the order of the patch; `before` has the values that it replaces, by pointer.

    Raises:
        PatchError: the patch does not fit the values that the record holds.
    """
    known = _known_part(patch, before)
    after = independently_patched(known, patch)
    changes = []
    for pointer, is_appended in _fields(patch).items():
        parts = steps_of(pointer)
        old = None if is_appended else value_at(known, parts)
        changes.append(FieldChange(pointer, old, value_at(after, parts), is_appended))
    return changes


def _fields(patch: Sequence[JsonObject]) -> dict[str, bool]:
    """Return the pointer of each changed field, with true if items are appended to it. A new field is one change."""
    fields: dict[str, bool] = {}
    for operation in patch:
        pointer = str(operation.get("path", ""))
        is_appended = pointer.endswith(f"/{_APPENDED}")
        pointer = pointer.removesuffix(f"/{_APPENDED}")
        if not any(f"{pointer}/".startswith(f"{known}/") for known in fields):
            fields[pointer] = is_appended
    return fields


def _known_part(patch: Sequence[JsonObject], before: JsonObject) -> JsonObject:
    """Return the part of the object that the patch changes, with the values in the record."""
    known: JsonObject = {}
    added: list[str] = []
    for operation in patch:
        pointer = str(operation.get("path", ""))
        parts = steps_of(pointer)
        if not parts or any(pointer.startswith(f"{each}/") for each in added):
            continue
        holder = _holder(known, parts)
        if operation.get("op") != "add" and isinstance(holder, dict):
            holder[parts[-1]] = before.get(pointer, UNKNOWN)
        elif parts[-1] != _APPENDED:
            added.append(pointer)
    return known


def _holder(known: JsonObject, parts: list[str]) -> Any:
    """Return the object or list that contains the value at `parts`. Create it and its parents if they are absent."""
    here: Any = known
    for step, following in pairwise(parts):
        is_list = (following == _APPENDED or following.isdecimal()) and step not in _MAPS
        fresh: Any = [] if is_list else {}
        if isinstance(here, dict):
            here = here.setdefault(step, fresh)
        elif isinstance(here, list) and step.isdecimal() and len(step) <= _MOST_DIGITS:
            here += [None] * (int(step) + 1 - len(here))
            here[int(step)] = here = here[int(step)] or fresh
        else:
            raise PatchError(f"the patch cannot be applied: {step} is no place in the object")
    return here


def field_path(pointer: str) -> str:
    """Return the pointer as a field path: `spec.tolerations[+]` (appended), `metadata.labels[a.io/b]`."""
    text = ""
    for part in steps_of(pointer):
        if part == _APPENDED:
            text += "[+]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text
