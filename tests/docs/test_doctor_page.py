"""docs/doctor.md has the checks of doctor, and the peers that it knows."""

from tests.docs.markdown import ROOT, rows
from webhook.doctor.peers import PEERS
from webhook.doctor.registry import CHECKS

PAGE = ROOT / "docs" / "doctor.md"


def test_table_has_every_check_with_its_remedy() -> None:
    assert list(rows(PAGE, "Checks")) == [(f"`{each.id}`", each.meaning, each.remedy) for each in CHECKS]


def test_every_peer_is_named() -> None:
    text = " ".join(PAGE.read_text().split())
    assert [each.name for each in PEERS if each.name.removeprefix("NVIDIA ") not in text] == []
