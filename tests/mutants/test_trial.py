"""A small project of its own: faults that its tests notice are killed, the others survive."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mutants.finding import change, find_mutants
from tests.mutants.recorded_run import recorded
from tests.mutants.selection import Recorded, batches, select_tests
from tests.mutants.trial import KILLED, SURVIVED, TIMEOUT, UNTESTED, Verdict, Workshop

ROOT = Path(__file__).parents[2]
MODULE = "webhook/size.py"
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
    "certs/__init__.py": "",
    "webhook/__init__.py": "",
    MODULE: """\
LIMIT = 5


def is_large(size):
    return size > LIMIT


def is_small(size):
    return size < LIMIT


def steps(size):
    while size:
        size -= 1
    return size


def is_forgotten(size):
    return size == LIMIT
""",
    "tests/__init__.py": "",
    "tests/test_size.py": """\
from webhook.size import is_large, is_small, steps


def test_a_strong_test_asks_on_both_sides_of_the_limit():
    assert (is_large(5), is_large(6)) == (False, True)


def test_a_weak_test_asks_far_from_the_limit():
    assert is_small(-100) and not is_small(100)


def test_steps_end():
    assert steps(2) == 0
""",
    "tests/test_unfit.py": """\
import os

from webhook.size import is_small


def test_that_fails_wherever_coverage_does_not_record():
    assert is_small(4) and "MUTANTS_COVERAGE" in os.environ
""",
}
FAULTS = {
    "return size > LIMIT → return size >= LIMIT": KILLED,
    "return size < LIMIT → return size <= LIMIT": SURVIVED,
    "LIMIT = 5 → LIMIT = 4": KILLED,
    "size -= 1 → size += 1": TIMEOUT,
    "return size == LIMIT → return size != LIMIT": UNTESTED,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    shutil.copytree(ROOT / "tests" / "mutants", root / "tests" / "mutants", ignore=shutil.ignore_patterns("test_*"))
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


@pytest.fixture(scope="module")
def found(project: Path) -> Recorded:
    return recorded(project)


@pytest.fixture(scope="module")
def verdicts(project: Path, found: Recorded) -> dict[str, Verdict]:
    source = FILES[MODULE]
    mutants = {" → ".join(change(source, mutant.code(source))): mutant for mutant in find_mutants(MODULE, source)}
    with Workshop(project, found.durations, seconds_to_spare=2) as workshop:
        return {
            fault: workshop.try_mutant(mutants[fault], source, batches(select_tests(mutants[fault], found, 10)))
            for fault in FAULTS
        }


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_killed_if_a_test_notices_it(verdicts: dict[str, Verdict], fault: str) -> None:
    assert verdicts[fault].outcome == FAULTS[fault]


def test_the_killer_is_named(verdicts: dict[str, Verdict]) -> None:
    killer = verdicts["return size > LIMIT → return size >= LIMIT"].killer

    assert killer == "tests/test_size.py::test_a_strong_test_asks_on_both_sides_of_the_limit"


def test_the_tree_is_not_written(project: Path, verdicts: dict[str, Verdict]) -> None:
    assert verdicts
    assert {name: (project / name).read_text() for name in FILES} == FILES


def test_a_test_file_that_is_added_is_recorded_beside_the_others(project: Path, found: Recorded) -> None:
    (forgotten,) = [each for each in find_mutants(MODULE, FILES[MODULE]) if each.operator.endswith("Eq_NotEq")]
    added = project / "tests" / "test_forgotten.py"
    added.write_text("from webhook.size import is_forgotten\n\n\ndef test():\n    assert is_forgotten(5)\n")
    again = recorded(project)
    added.unlink()

    assert select_tests(forgotten, found, 10) == []
    assert select_tests(forgotten, again, 10) == ["tests/test_forgotten.py::test"]
    assert {*again.durations} == {*found.durations, "tests/test_forgotten.py::test"}
    assert {*recorded(project).durations} == {*found.durations}
