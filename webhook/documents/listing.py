"""Format lists of names, and counts with nouns."""

from collections.abc import Sequence


def some(texts: Sequence[str], most: int = 5, noun: str = "") -> str:
    """Return the first of `texts` and the number of the others, such as `a, b and 3 more`, or `a, b, 3 more nodes`."""
    left_out = len(texts) - most
    end = f", {left_out} more {noun}" if noun else f" and {left_out} more"
    return ", ".join(texts[:most]) + (end if left_out > 0 else "")


def plural(count: int, noun: str) -> str:
    """Return `1 pod`, or `2 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
