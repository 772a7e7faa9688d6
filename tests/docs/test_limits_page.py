"""The table of docs/limits.md names tests that exist."""

import ast
import re
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_PAGE = _TESTS.parent / "docs" / "limits.md"


def _rows() -> list[str]:
    _, _, table = _PAGE.read_text().partition("| who | what the webhook does | test |\n|---|---|---|\n")
    return table.splitlines()


def test_each_row_names_a_test_that_exists() -> None:
    known = {
        each.name
        for path in _TESTS.rglob("test_*.py")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = [re.findall(r"`(test_\w+)`", row) for row in _rows()]

    assert len(named) > 10
    assert [row for row, names in zip(_rows(), named, strict=True) if not names and "the same |" not in row] == []
    assert {name for names in named for name in names} - known == set()
