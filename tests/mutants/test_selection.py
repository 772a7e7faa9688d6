"""The tests that run for a mutant, and their order."""

from textwrap import dedent

import pytest
from coverage import CoverageData

from tests.mutants.finding import Mutant
from tests.mutants.selection import Recorded, batches, mirror_of, place_of, select_tests

PATH = "webhook/kube/size.py"
SOURCE = dedent(
    """\
    LIMIT = 5


    def is_large(size, limit=3):
        if (
            size > limit
        ):
            return True
        return size > LIMIT
    """
)


def mutant(line: int) -> Mutant:
    return Mutant(PATH, "AddNot", 0, line, line, "", 0)


def recorded(lines: dict[str, list[int]], durations: dict[str, float]) -> Recorded:
    data = CoverageData(no_disk=True)
    for test, numbers in lines.items():
        data.set_context(test)
        data.add_lines({f"/copy/{PATH}": numbers})
    return Recorded(data, "/copy", durations, {PATH: SOURCE})


def test_tests_over_the_statement_of_the_line_are_run_the_quickest_first() -> None:
    found = recorded(
        {"t::slow": [5, 8], "t::quick": [5, 9], "t::other": [9]}, {"t::slow": 2, "t::quick": 1, "t::other": 1}
    )

    assert select_tests(mutant(6), found, budget=10) == ["t::quick", "t::slow"]


def test_the_mirroring_test_file_comes_first() -> None:
    mirror = "tests/kube/test_size.py::test"
    found = recorded({"tests/a.py::test": [5], mirror: [5]}, {"tests/a.py::test": 1, mirror: 2})

    assert select_tests(mutant(6), found, budget=10) == [mirror, "tests/a.py::test"]


def test_the_budget_bounds_the_tests_but_for_the_first() -> None:
    found = recorded({"t::a": [5], "t::b": [5], "t::c": [5]}, {"t::a": 3, "t::b": 3, "t::c": 3})

    assert select_tests(mutant(6), found, budget=7) == ["t::a", "t::b"]
    assert select_tests(mutant(6), found, budget=1) == ["t::a"]


def test_what_runs_at_import_is_left_to_the_tests_of_its_users_and_then_of_its_module() -> None:
    found = recorded({"": [1, 4], "t::user": [9], "t::module": [5]}, {"t::user": 2, "t::module": 1})

    assert select_tests(mutant(1), found, budget=10) == ["t::user", "t::module"]


def test_what_runs_at_import_is_left_to_the_mirroring_tests_too() -> None:
    """A test of the defaults of a dataclass passes over no line of its module."""
    mirror = "tests/kube/test_size.py::test"
    found = recorded({"": [1, 4], "t::user": [9]}, {"t::user": 1, mirror: 2})

    assert select_tests(mutant(1), found, budget=10) == [mirror, "t::user"]


def test_a_default_argument_is_left_to_the_tests_over_its_function() -> None:
    found = recorded({"": [1, 4], "t::body": [8]}, {"t::body": 1})

    assert select_tests(mutant(4), found, budget=10) == ["t::body"]


def test_a_line_that_no_test_passes_over_has_no_tests() -> None:
    assert select_tests(mutant(6), recorded({"": [1, 4], "t::other": [9]}, {"t::other": 1}), budget=10) == []


@pytest.mark.parametrize(
    ("line", "lines", "at_import"), [(1, range(1, 2), True), (6, range(5, 8), False), (4, range(4, 5), True)]
)
def test_place_is_the_innermost_statement(line: int, lines: range, at_import: bool) -> None:
    place = place_of(SOURCE, line)

    assert (place.lines, place.at_import) == (lines, at_import)


def test_mirror_is_named_after_the_module() -> None:
    assert mirror_of("webhook/__main__.py") == "tests/test___main__"
    assert mirror_of("webhook/kube/cel/expression.py") == "tests/kube/cel/test_expression"
    assert mirror_of("certs/cluster/probe.py") == "tests/certs/cluster/test_probe"


def test_tests_are_run_in_growing_batches_of_files() -> None:
    tests = [f"tests/{name}.py::test" for name in "abcdefg"]

    assert [len(batch) for batch in batches([tests[0], *tests])] == [2, 4, 2]
