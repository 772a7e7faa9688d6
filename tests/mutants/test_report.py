"""The score, and the mutants that are left out of it because they change nothing."""

from pathlib import Path

import pytest

from tests.mutants.equivalents import Equivalent, read_equivalents, stale
from tests.mutants.finding import Mutant
from tests.mutants.recorded_run import sources
from tests.mutants.report import score, survivors, table
from tests.mutants.trial import KILLED, SURVIVED, TIMEOUT, UNTESTED, Verdict

ROOT = Path(__file__).parents[2]
PATH = "webhook/kube/size.py"


def verdict(outcome: str, after: str = "x = 2") -> Verdict:
    return Verdict(Mutant(PATH, "NumberReplacer", 0, 7, 7, "", 0), outcome, "x = 1", after, tests=3)


def test_the_score_is_the_part_that_is_killed() -> None:
    verdicts = [verdict(KILLED), verdict(TIMEOUT), verdict(SURVIVED), verdict(UNTESTED)]

    assert score(verdicts, []).percent == 50


def test_equivalents_are_not_counted_unless_they_are_killed() -> None:
    known = [Equivalent(PATH, "x = 1", "x = 2", "x is not read")]
    verdicts = [verdict(KILLED), verdict(SURVIVED), verdict(SURVIVED, after="x = 0")]
    found = score(verdicts, known)

    assert (found.killed, len(found.verdicts), found.equivalent) == (1, 2, 1)


def test_survivors_are_shown_with_their_change() -> None:
    shown = survivors(score([verdict(KILLED), verdict(SURVIVED, after="x = 0")], []))

    assert shown.splitlines() == [f"{PATH}:7: survived, NumberReplacer, 3 tests", "    - x = 1", "    + x = 0"]


def test_the_table_has_a_row_for_each_package_and_one_for_all() -> None:
    rows = table({"certs": score([verdict(KILLED)], []), "webhook": score([verdict(SURVIVED)], [])}).splitlines()

    assert [row.split("|")[1].strip() for row in rows[2:]] == ["certs", "webhook", "all"]
    assert [row.split("|")[-2].strip() for row in rows[2:]] == ["100 %", "0 %", "50 %"]


def test_an_equivalent_needs_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "equivalents.toml"
    file.write_text('[[equivalent]]\nfile = "a.py"\nbefore = "x"\nafter = "y"\nreason = " "\n')

    with pytest.raises(ValueError, match="a reason is required"):
        read_equivalents(file)


def test_every_equivalent_names_a_line_of_the_code() -> None:
    assert stale(read_equivalents(), sources(ROOT)) == []


def test_an_equivalent_whose_line_is_gone_is_stale() -> None:
    gone = Equivalent(PATH, "x = 1", "x = 2", "x is not read")

    assert stale([gone], {PATH: "x = 3\n"}) == [gone]
    assert stale([gone], {PATH: "if y:\n    x = 1\n"}) == []
