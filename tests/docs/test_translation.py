"""README.md and README.zh-CN.md have the same code, names and links."""

import re
from pathlib import Path

from tests.docs.markdown import ROOT, blocks, links, spans

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
_COMMENT = re.compile(r"\s{2,}# .*")


def code_of(document: Path) -> list[str]:
    """Return the code blocks without comments."""
    return [f"{block.language}\n{_COMMENT.sub('', block.text)}" for block in blocks(document)]


def files_linked_by(document: Path) -> list[str]:
    return [path for link in links(document) if (path := link.partition("#")[0])]


def test_both_link_to_each_other() -> None:
    assert CHINESE.name in links(ENGLISH)
    assert ENGLISH.name in links(CHINESE)


def test_commands_and_examples_are_the_same() -> None:
    assert code_of(CHINESE) == code_of(ENGLISH)


def test_the_same_names_are_used() -> None:
    """Compare all code spans: annotations, flags, metrics, commands, values."""
    assert set(spans(CHINESE)) == set(spans(ENGLISH))


def test_the_same_pages_are_linked() -> None:
    both = {ENGLISH.name, CHINESE.name}

    assert set(files_linked_by(CHINESE)) - both == set(files_linked_by(ENGLISH)) - both
