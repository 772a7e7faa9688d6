"""No representative admission calls more functions than the committed table says."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.call_counts.table import TABLE, counts_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ALLOWED = counts_of(TABLE.read_text())
# Below this share of its row, a count has become so much better that the row guards nothing.
LEAST_SHARE = 0.9
# The table is that of the oldest supported Python; the standard library of another one calls a few functions more.
MOST_SHARE = 1.0 if sys.version_info[:2] == (3, 11) else 1.1


@pytest.fixture(scope="module")
def counts() -> Mapping[str, int]:
    """Count in a process of its own, in which nothing else has filled a cache, and whose clocks stand still."""
    command = [sys.executable, "-m", "tests.call_counts"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return counts_of(run.stdout)


def test_each_case_has_a_row(counts: Mapping[str, int]) -> None:
    assert list(counts) == list(ALLOWED)


@pytest.mark.parametrize("case", ALLOWED)
def test_a_case_calls_as_many_functions_as_its_row(counts: Mapping[str, int], case: str) -> None:
    count, row = counts[case], ALLOWED[case]
    remedy = (
        f"{case}: {count} calls of Python functions, {row} in {TABLE.name}. "
        f"`python -m tests.call_counts --most {case!r}` lists the functions called most; "
        "`python -m tests.call_counts --write` writes the table, in a commit that says why it changes"
    )

    assert count <= MOST_SHARE * row, remedy
    assert count >= LEAST_SHARE * row, remedy
