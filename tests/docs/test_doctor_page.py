"""docs/doctor.md has the checks of doctor."""

from tests.docs.markdown import ROOT, rows
from webhook.doctor.registry import CHECKS

PAGE = ROOT / "docs" / "doctor.md"


def test_table_has_every_check_with_its_remedy() -> None:
    assert list(rows(PAGE, "Checks")) == [(f"`{each.id}`", each.meaning, each.remedy) for each in CHECKS]
