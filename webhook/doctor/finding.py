"""Findings: what a check reports about an installation."""

from collections.abc import Iterable
from enum import Enum
from functools import partial
from typing import NamedTuple

MOST_NAMED = 10


class Severity(Enum):
    """The severities. An `ERROR` breaks the webhook or its pods, a `WARNING` will or may; an `INFO` is no fault."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(NamedTuple):
    """The object and field, what is wrong there, and what mends it, a command where one does.

    `check` is the id of the check that found it, which the diagnosis sets.
    """

    severity: Severity
    where: str
    what: str
    remedy: str
    check: str = ""


error = partial(Finding, Severity.ERROR)
warning = partial(Finding, Severity.WARNING)
info = partial(Finding, Severity.INFO)


def named(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return the first `names` as text, with the number of the others: `a, b and 3 more`."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more
