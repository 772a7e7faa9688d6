"""The oracle shares no code with what it checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ORACLE = sorted(FOLDER.glob("oracle*.py"))
CHECKED = {"webhook", "certs", "placement_planner"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_oracle_is_there() -> None:
    assert FOLDER / "oracle.py" in ORACLE


@pytest.mark.parametrize("path", ORACLE, ids=lambda path: path.stem)
def test_the_oracle_imports_nothing_that_it_checks(path: Path) -> None:
    assert [name for name in imports(path) if name.partition(".")[0] in CHECKED] == []


@pytest.mark.parametrize("path", ORACLE, ids=lambda path: path.stem)
def test_the_oracle_imports_of_the_tests_its_own_modules_alone(path: Path) -> None:
    allowed = tuple(f"tests.oracles.{each.stem}." for each in ORACLE)
    of_tests = [name for name in imports(path) if name.partition(".")[0] == "tests"]
    assert [name for name in of_tests if not name.startswith(allowed)] == []
