"""README.md and README.zh-CN.md have the same headings and code blocks, and link to each other."""

import re
from pathlib import Path

from tests.docs.markdown import ROOT, blocks, links, prose

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
_COMMENT = re.compile(r"\s{2,}# .*")


def code_of(document: Path) -> list[str]:
    """Return the code blocks without comments."""
    return [f"{block.language}\n{_COMMENT.sub('', block.text)}" for block in blocks(document)]


def heading_levels(document: Path) -> list[int]:
    return [len(line) - len(line.lstrip("#")) for line in prose(document) if line.startswith("#")]


def test_both_link_to_each_other() -> None:
    assert CHINESE.name in links(ENGLISH)
    assert ENGLISH.name in links(CHINESE)


def test_headings_and_commands_are_the_same() -> None:
    assert heading_levels(CHINESE) == heading_levels(ENGLISH)
    assert code_of(CHINESE) == code_of(ENGLISH)
