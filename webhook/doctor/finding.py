"""Findings: what a check reports about an installation."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

MOST_NAMED = 10


class Severity(Enum):
    """The severities. An `ERROR` breaks the webhook or its pods, a `WARNING` will or may; an `INFO` is no fault."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Fault(NamedTuple):
    """One fault: the object and field, what is wrong there, and what mends it, a command where one does."""

    severity: Severity
    where: str
    what: str
    remedy: str


class Finding(NamedTuple):
    """A fault with the id of the check that found it."""

    check: str
    severity: Severity
    where: str
    what: str
    remedy: str


def error(where: str, what: str, remedy: str) -> Fault:
    """Return a fault that breaks the webhook or pods of users."""
    return Fault(Severity.ERROR, where, what, remedy)


def warning(where: str, what: str, remedy: str) -> Fault:
    """Return a fault that will break something, or does so for some pods."""
    return Fault(Severity.WARNING, where, what, remedy)


def info(where: str, what: str, remedy: str) -> Fault:
    """Return a note: a fact that a reader of the diagnosis needs, but no fault."""
    return Fault(Severity.INFO, where, what, remedy)


def named(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return the first `names` as text, with the number of the others: `a, b and 3 more`."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more
