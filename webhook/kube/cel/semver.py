"""Semantic versions, as ResourceSlices and the selectors of devices have them."""

import re
from functools import total_ordering
from typing import NamedTuple

_NUMBER = r"(0|[1-9][0-9]{0,18})"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?", re.ASCII)
_LONGEST = 256


@total_ordering
class Semver:
    """A version; of two that differ in their build metadata alone, neither is the larger."""

    __slots__ = ("_order", "major", "minor", "patch")

    def __init__(self, text: str) -> None:
        """Read `text`.

        Raises:
            ValueError: it is no semantic version 2.0.0.

        Source: github.com/blang/semver/v4, Parse and Compare
        """
        match = _SEMVER.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError('must be a semantic version, as in "1.2.3" or "1.2.3-beta.1"')
        self.major, self.minor, self.patch = (int(match[group]) for group in (1, 2, 3))
        released = match[4] is None
        identifiers = () if released else tuple(map(_identifier, match[4].split(".")))
        self._order = (self.major, self.minor, self.patch, released, identifiers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __lt__(self, other: "Semver") -> bool:
        return self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)


def is_semver(text: object) -> bool:
    """Whether `text` is a semantic version."""
    try:
        Semver(text if isinstance(text, str) else "")
    except ValueError:
        return False
    return True


class _Identifier(NamedTuple):
    """Numbers come before words, and are compared as numbers."""

    is_word: bool
    number: int
    word: str


def _identifier(text: str) -> _Identifier:
    if not text.isdigit():
        return _Identifier(is_word=True, number=0, word=text)
    if len(text) > 1 and text.startswith("0"):
        raise ValueError("a numeric identifier of a pre-release must not begin with 0")
    return _Identifier(is_word=False, number=int(text), word="")
