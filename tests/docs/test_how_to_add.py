"""The lists of ARCHITECTURE.md under "How to add …" name the files that an addition touches, by a model to copy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.docs.markdown import ROOT, spans_of

PAGE = ROOT / "ARCHITECTURE.md"
HEADING = "## How to add …\n"
KINDS = (
    "A rule",
    "A plugin",
    "A metric",
    "An annotation",
    "A policy field",
    "A rule on several policy fields",
    "A CLI command",
    "A check of doctor",
    "A GPU vendor",
    "A kind that creates pods",
    "A kind of cluster object",
    "A change between releases",
)
FOLDERS = ("webhook", "certs", "deploy", "docs", "bench", ".ci")
ROOT_FILES = ("*.md", "Makefile", "pyproject.toml", "Dockerfile")
# These pages mention everything.
PAGES_OF_ALL = ("ARCHITECTURE.md", "CHANGELOG.md")


@dataclass(frozen=True, slots=True)
class Checklist:
    """One list: the names by which its model is found, and the files of its numbered steps."""

    kind: str
    names: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def model_file(self) -> str:
        """The first file, which is the one to copy or to add to."""
        return self.files[0]

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


@cache
def texts(folder: str) -> dict[str, str]:
    """Return the texts of the files in the folder, by their paths; those of the root itself for an empty one."""
    files = (ROOT / folder).rglob("*") if folder else (path for name in ROOT_FILES for path in ROOT.glob(name))
    return {
        name: path.read_text(errors="replace")
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
        if (name := path.relative_to(ROOT).as_posix()) not in PAGES_OF_ALL
    }


def mentioning(checklist: Checklist) -> set[str]:
    """Return the files outside of the tests that mention the model."""
    return {
        name
        for folder in ("", *FOLDERS)
        for name, text in texts(folder).items()
        if checklist.is_mentioned_in(text) or name == checklist.model_file
    }


LISTS = tuple(checklists())
named = pytest.mark.parametrize("checklist", LISTS, ids=lambda checklist: checklist.kind)


def test_each_kind_of_addition_has_a_list() -> None:
    assert tuple(checklist.kind for checklist in LISTS) == KINDS


@named
def test_a_list_has_a_model_and_steps(checklist: Checklist) -> None:
    assert checklist.names
    assert len(set(checklist.files)) == len(checklist.files) > 1


@named
def test_the_steps_name_every_file_that_mentions_the_model_and_no_other(checklist: Checklist) -> None:
    assert {file for file in checklist.files if not file.startswith("tests/")} == mentioning(checklist)


@named
def test_the_tests_of_the_steps_mention_the_model(checklist: Checklist) -> None:
    tests = [file for file in checklist.files if file.startswith("tests/")]
    silent = [
        file for file in tests if not any(checklist.is_mentioned_in(path.read_text()) for path in ROOT.glob(file))
    ]

    assert silent == []
