"""The committed table of calls."""

from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).with_suffix(".txt")


def lines_of(counts: Mapping[str, int]) -> str:
    """Return a table."""
    return "".join(f"{name}: {count}\n" for name, count in counts.items())


def counts_of(text: str) -> dict[str, int]:
    """Return the counts in a table."""
    rows = (line.rpartition(": ") for line in text.splitlines())
    return {name: int(count) for name, _, count in rows}
