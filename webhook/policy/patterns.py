"""Patterns with `*` of the policy."""

from collections.abc import Iterable
from fnmatch import fnmatchcase


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of `patterns` matches `name`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
