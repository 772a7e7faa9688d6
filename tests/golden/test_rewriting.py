"""`make golden` changes only wrong expectations, byte for byte."""

import re
from pathlib import Path

import pytest

from tests.golden.__main__ import rewrite
from tests.golden.case import CASES, load
from tests.golden.rewriting import CannotRewriteError, rewritten

BYPASSED = next(path for path in CASES if path.stem == "no_workload_type")
PATCHED = next(path for path in CASES if path.stem == "wider_term_is_narrowed")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_that_passes_stays_as_it_is(path: Path) -> None:
    assert rewritten(path.read_text(), path.name) == path.read_text()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_wanted_values_are_written_in_the_style_of_the_files(path: Path) -> None:
    text = path.read_text()
    head, separator, _ = text.partition("\nwant:\n")
    want = load(path)["want"]
    names = want.get("rules", {})
    emptied = dict.fromkeys(want, "null") | ({"rules": str(dict.fromkeys(names, ""))} if names else {})
    hollow = "".join(f"  {key}: {value}\n" for key, value in emptied.items())

    # Long messages were folded at other widths.
    assert rewritten(head + separator + hollow, path.name).split() == text.split()


def test_warnings_are_added_to_a_case_that_has_none() -> None:
    text = next(path for path in CASES if path.stem == "bad_key_warned_of").read_text()
    without = re.sub(r"^  warnings:\n(  -.*\n(    .*\n)*)+", "", text, flags=re.MULTILINE)

    assert without != text
    assert "  warnings:\n  - " in rewritten(without, "case")


def test_a_comment_outside_of_what_changes_stays() -> None:
    text = PATCHED.read_text()
    wrong = text.replace("want:\n", "want:\n  # by design\n", 1).replace("(weight 100)", "(weight 7)")

    assert rewritten(wrong, "case") == text.replace("want:\n", "want:\n  # by design\n", 1)


def test_a_comment_is_not_lost() -> None:
    wrong = PATCHED.read_text().replace("(weight 100)", "(weight 7)  # for now")

    with pytest.raises(CannotRewriteError, match=r"case: want\.rules has a comment"):
        rewritten(wrong, "case")


def test_case_with_another_outcome_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(BYPASSED.read_text() + "  message: denied\n")

    assert rewrite([path]) == ([], ["case.yaml: the outcome is Bypassed, which has no message"])


def test_changed_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(PATCHED.read_text().replace("outcome: Patched", "outcome: Unchanged"))

    assert rewrite([path]) == ([path], [])
    assert path.read_text() == PATCHED.read_text()
