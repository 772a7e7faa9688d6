"""Rules of tests: assertions are about the code, not about the machine that runs them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
_CLOCKS = {
    *("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    *("time.time", "time.time_ns"),
}
# What waits for another process, with a bound.
_WAITING = {TESTS / "controlplane" / "go_command.py", TESTS / "controlplane" / "polling.py"}


def _reads_a_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name in _CLOCKS or name.removeprefix("time.") in _CLOCKS


def _timed(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where a clock that is read then and there is compared or subtracted."""
    for node in ast.walk(tree):
        is_addition = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Sub)
        if isinstance(node, ast.Assert | ast.Compare | ast.BinOp) and not is_addition:
            yield from sorted({node.lineno for each in ast.walk(node) if _reads_a_clock(each)})


def _catch_alls(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where any exception passes for the expected one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("raises"):
            expected = [each for argument in node.args for each in ast.walk(argument)]
            if any(isinstance(each, ast.Name) and each.id in ("Exception", "BaseException") for each in expected):
                yield node.lineno


@pytest.mark.slow
def test_expected_exceptions_are_named_and_no_machine_is_timed() -> None:
    """Count the work (`tests/support/work.py`) or inject a clock; `make abuse` checks promises about time."""
    found = [f"{path.relative_to(TESTS)}:{line}" for path in FILES for line in _forbidden(path)]

    assert found == []


def _forbidden(path: Path) -> Iterator[int]:
    text = path.read_text()
    # A file without these words is not parsed.
    if "Exception" in text:
        yield from _catch_alls(ast.parse(text))
    if path not in _WAITING and any(clock in text for clock in _CLOCKS):
        yield from _timed(ast.parse(text))


@pytest.mark.parametrize(
    "source",
    [
        "with pytest.raises(Exception): pass",
        "with pytest.raises((ValueError, BaseException), match='x'): pass",
        "assert time.monotonic() - began < 2",
        "assert perf_counter() < end",
        "elapsed = time.time() - began",
    ],
)
def test_the_rules_find_what_they_forbid(source: str) -> None:
    tree = ast.parse(source)

    assert {*_catch_alls(tree), *_timed(tree)} == {1}
