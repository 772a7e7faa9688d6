"""The files that the lists of docs/contributing.md under "How to add …" name exist and mention the model to copy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.docs.markdown import ROOT, spans_of

PAGE = ROOT / "docs" / "contributing.md"
HEADING = "## How to add …\n"


@dataclass(frozen=True, slots=True)
class Checklist:
    """One list: the names by which its model is found, and the files of its numbered steps."""

    kind: str
    names: tuple[str, ...]
    files: tuple[str, ...]

    def is_mentioned_in(self, text: str) -> bool:
        """Return whether one of the names stands in `text`, not as a part of a longer word."""
        return any(re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text) for name in self.names)


def checklists() -> Iterator[Checklist]:
    section = PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]
    for part in section.split("\n### ")[1:]:
        kind, _, body = part.partition("\n")
        copied = re.search(r"^Copy .*$", body, re.MULTILINE)
        steps = re.findall(r"^\d+\. (.+?):", body, re.MULTILINE)
        files = tuple(file for step in steps for file in spans_of(step))
        yield Checklist(kind, tuple(spans_of(copied.group())) if copied else (), files)


@pytest.mark.parametrize("checklist", list(checklists()), ids=lambda checklist: checklist.kind)
def test_the_files_of_the_steps_mention_the_model(checklist: Checklist) -> None:
    model, *others = checklist.files
    silent = [
        file for file in others if not any(checklist.is_mentioned_in(path.read_text()) for path in ROOT.glob(file))
    ]

    assert (ROOT / model).is_file()
    assert checklist.names
    assert silent == []
