"""Mutants that no test can tell from the code, each with its reason; they are not counted."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.trial import Verdict

FILE = Path(__file__).parent / "equivalents.toml"


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant named by its text, so that it is still found after other lines have moved."""

    path: str
    before: str
    after: str
    reason: str

    def names(self, verdict: Verdict) -> bool:
        return (self.path, self.before, self.after) == (verdict.mutant.path, verdict.before, verdict.after)


def read_equivalents(file: Path = FILE) -> list[Equivalent]:
    """Return the entries of the file.

    Raises:
        ValueError: an entry gives no reason.
    """
    entries = tomllib.loads(file.read_text()).get("equivalent", [])
    found = [Equivalent(each["file"], each["before"], each["after"], each["reason"].strip()) for each in entries]
    for each in found:
        if not each.reason:
            raise ValueError(f"{file}: {each.path}: {each.before}: a reason is required")
    return found


def stale(equivalents: Iterable[Equivalent], sources: Mapping[str, str]) -> list[Equivalent]:
    """Return the entries whose line is gone from the code."""
    return [each for each in equivalents if not _is_there(each, sources.get(each.path, ""))]


def _is_there(equivalent: Equivalent, source: str) -> bool:
    lines = [line.strip() for line in source.splitlines()]
    return all(line in lines for line in equivalent.before.splitlines())
