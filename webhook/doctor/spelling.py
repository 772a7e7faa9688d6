"""Find what a mistyped name was meant to be. Pure, in time bounded by the length of names."""

from collections.abc import Iterable

_MOST_EDITS = 2
_SHORTEST = 4
_LONGEST = 128
# Characters that people and fonts confuse, and separators.
_CONFUSED = str.maketrans({"o": "0", "i": "1", "l": "1", "_": "-", ".": "-", " ": "-"})


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the name of `known` that `name` is a mistyped form of; None if it is in `known`, or like none.

    Names with other digits are other names (80GB and 40GB), unless a letter stands for the digit (H2O and H20).
    """
    candidates = sorted(set(known))
    if name in candidates or not _SHORTEST <= len(name) <= _LONGEST:
        return None
    text = _folded(name)
    for each in candidates:
        if _folded(each) == text:
            return each
    similar = [each for each in candidates if _digits(each) == _digits(name) and _SHORTEST <= len(each) <= _LONGEST]
    near = [(distance(name.casefold(), each.casefold()), each) for each in similar]
    return next((each for edits, each in sorted(near) if edits <= _MOST_EDITS), None)


def looks_like(name: str, other: str) -> bool:
    """Return whether two different names look alike: H2O and H20, but not L40 and L40S."""
    return name != other and _folded(name) == _folded(other)


def distance(left: str, right: str) -> int:
    """Return the number of insertions, deletions and replacements between two texts; 3 stands for more."""
    if abs(len(left) - len(right)) > _MOST_EDITS:
        return _MOST_EDITS + 1
    row = list(range(len(right) + 1))
    for index, char in enumerate(left, start=1):
        diagonal, row[0] = row[0], index
        for other, wanted in enumerate(right, start=1):
            diagonal, row[other] = row[other], min(row[other] + 1, row[other - 1] + 1, diagonal + (char != wanted))
        if min(row) > _MOST_EDITS:
            return _MOST_EDITS + 1
    return min(row[-1], _MOST_EDITS + 1)


def _folded(name: str) -> str:
    return name.casefold().translate(_CONFUSED)


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())
