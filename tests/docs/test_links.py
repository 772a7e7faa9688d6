"""Links resolve, and the named files exist."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import DOCUMENTS, ROOT, anchors, links, name_of, spans

DOCS = ROOT / "docs"
_PATH = re.compile(r"(?:webhook|certs|tests|deploy|bench|docs|\.ci)/[\w./-]*")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_relative_links_lead_to_files_and_headings(document: Path) -> None:
    lost: list[str] = []
    for link in links(document):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)

    assert lost == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_paths_of_the_repository_exist(document: Path) -> None:
    named = {span for span in spans(document) if _PATH.fullmatch(span)}

    assert [path for path in sorted(named) if not any((base / path).exists() for base in (ROOT, document.parent))] == []


def test_the_index_links_every_page() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "README.md")}

    assert set(DOCS.glob("*.md")) - linked == {DOCS / "README.md"}
