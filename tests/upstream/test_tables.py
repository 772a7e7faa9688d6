"""The results for the cases of kube-scheduler's own unit tests do not contradict kube-scheduler's."""

from pathlib import Path

import pytest

from tests.upstream.cases import read_cases
from tests.upstream.comparing import AGREES, CONTRADICTS, EXCLUDED, ComparedCase, compare
from tests.upstream.tracing import TRACED


@pytest.fixture(scope="module")
def compared(upstream_tables: Path) -> list[ComparedCase]:
    """Every case with its outcome."""
    return [ComparedCase(case, compare(case)) for case in read_cases(upstream_tables)]


@pytest.mark.parametrize("plugin", [each.name for each in TRACED])
def test_no_answer_contradicts_kube_scheduler(compared: list[ComparedCase], plugin: str) -> None:
    cases = [each for each in compared if each.case.plugin == plugin]
    found = [(case.test, outcome.detail) for case, outcome in cases if outcome.kind == CONTRADICTS]
    assert found == []
    assert any(outcome.kind == AGREES for _, outcome in cases)


def test_every_exclusion_is_needed(compared: list[ComparedCase]) -> None:
    used = {outcome.exclusion for _, outcome in compared if outcome.exclusion}
    assert [each for each in EXCLUDED if each not in used] == []
