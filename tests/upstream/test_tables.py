"""No case of kube-scheduler's own unit tests has an answer here that goes against kube-scheduler's."""

from pathlib import Path

import pytest

from tests.upstream.cases import read_cases
from tests.upstream.judging import AGREES, APART, CONTRADICTS, Judged, judge
from tests.upstream.tracing import TRACED


@pytest.fixture(scope="module")
def judged(upstream_tables: Path) -> list[Judged]:
    """Every case with what came of it."""
    return [Judged(case, judge(case)) for case in read_cases(upstream_tables)]


@pytest.mark.parametrize("plugin", [each.name for each in TRACED])
def test_no_answer_contradicts_kube_scheduler(judged: list[Judged], plugin: str) -> None:
    own = [each for each in judged if each.case.plugin == plugin]
    found = [(case.test, outcome.detail) for case, outcome in own if outcome.kind == CONTRADICTS]
    assert found == []
    assert any(outcome.kind == AGREES for _, outcome in own)


def test_cases_set_aside_would_contradict(judged: list[Judged]) -> None:
    used = {outcome.apart for _, outcome in judged if outcome.apart}
    assert [each for each in APART if each not in used] == []
