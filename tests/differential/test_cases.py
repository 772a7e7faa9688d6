"""Predictions match recorded answers of kube-scheduler: every file in cases/ is replayed without a control plane."""

from pathlib import Path

import pytest

from tests.differential.cases import FOLDER, read
from tests.differential.trial import compare

CASES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_recorded_answer_is_predicted(path: Path) -> None:
    case = read(path)
    assert compare(case.pod, case.snapshot(), case.answer) == []


@pytest.mark.slow
def test_every_case_says_why() -> None:
    assert CASES
    assert [path.name for path in CASES if not read(path).why] == []
