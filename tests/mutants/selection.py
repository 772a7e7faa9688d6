"""The tests that can notice a mutant: those that pass over its line, or for what runs at import, over its users."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from coverage import CoverageData

from tests.mutants.finding import Mutant

Lines = Mapping[int, frozenset[str]]


@dataclass
class Recorded:
    """The result of the recording run: tests by line, and their durations in seconds."""

    data: CoverageData
    root: str
    durations: Mapping[str, float]
    sources: Mapping[str, str]
    _lines: dict[str, Lines] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path, root: str, durations: Mapping[str, float], sources: Mapping[str, str]) -> "Recorded":
        data = CoverageData(str(file))
        data.read()
        return cls(data, root, durations, sources)

    def lines(self, path: str) -> Lines:
        """Return the tests by the lines of a module; the context of what runs at import is ''."""
        if path not in self._lines:
            found = self.data.contexts_by_lineno(f"{self.root}/{path}")
            self._lines[path] = {line: frozenset(contexts) for line, contexts in found.items()}
        return self._lines[path]

    def tests_over(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        covered = self.lines(path)
        found = frozenset[str]().union(*(covered.get(line, ()) for line in lines))
        return found & self.durations.keys()

    def tests_of_module(self, path: str) -> frozenset[str]:
        return self.tests_over(path, self.lines(path))

    @cached_property
    def _source_lines(self) -> list[tuple[str, int, str]]:
        return [
            (path, number, line)
            for path, source in self.sources.items()
            for number, line in enumerate(source.splitlines(), 1)
        ]

    def tests_of_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return the tests over a line that mentions one of `names`."""
        alternatives = "|".join(re.escape(name) for name in names)
        mention = re.compile(rf"\b(?:{alternatives})\b")
        places = [(path, number) for path, number, line in self._source_lines if alternatives and mention.search(line)]
        return frozenset[str]().union(*(self.tests_over(path, [number]) for path, number in places))


@dataclass(frozen=True, slots=True)
class Place:
    """The statement of a mutant."""

    lines: range
    at_import: bool
    body: range
    """The function whose header the statement is."""
    names: tuple[str, ...]
    """Return the names that a statement that runs at import defines."""


def place_of(source: str, line: int) -> Place:
    """Return the innermost statement that `line` is a line of."""
    within_function = False
    statement: ast.stmt | None = None
    body: list[ast.stmt] = ast.parse(source).body
    while True:
        inner = next((each for each in body if _first_line(each) <= line <= (each.end_lineno or 0)), None)
        if inner is None:
            break
        statement = inner
        body = _statements_in(inner)
        in_body = any(_first_line(each) <= line <= (each.end_lineno or 0) for each in body)
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and in_body:
            within_function = True
    if statement is None:
        return Place(range(line, line + 1), not within_function, range(0), ())
    last = min((_first_line(each) - 1 for each in _statements_in(statement)), default=statement.end_lineno or line)
    is_header = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    whole = range(statement.lineno, (statement.end_lineno or line) + 1) if is_header else range(0)
    lines = range(_first_line(statement), max(last, line) + 1)
    return Place(lines, not within_function, whole, () if within_function else _defined(statement))


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _statements_in(statement: ast.stmt) -> list[ast.stmt]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", ())]
    blocks += [case.body for case in getattr(statement, "cases", ())]
    return [each for block in blocks for each in block]


def _defined(statement: ast.stmt) -> tuple[str, ...]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (statement.name,)
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    return tuple(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def select_tests(mutant: Mutant, recorded: Recorded, budget: float) -> list[str]:
    """Return the tests to run in order: those of the mirroring test file first, then the quickest.

    Their durations add up to `budget` seconds at most, but there is one if any test can notice the mutant.
    """
    place = place_of(recorded.sources[mutant.path], mutant.line)
    near = recorded.tests_over(mutant.path, [*place.lines, *range(mutant.line, mutant.last_line + 1)])
    far: frozenset[str] = frozenset()
    mirror = mirror_of(mutant.path)
    if place.at_import:
        near |= recorded.tests_over(mutant.path, place.body) | recorded.tests_of_names(place.names)
        # The __init__ of a dataclass has no lines of the module.
        near |= {test for test in recorded.durations if test.startswith(mirror)}
        far = recorded.tests_of_module(mutant.path)

    def order(test: str) -> tuple[bool, bool, float, str]:
        return test not in near, not test.startswith(mirror), recorded.durations[test], test

    chosen: list[str] = []
    for test in sorted(near | far, key=order):
        if chosen and recorded.durations[test] > budget:
            continue
        chosen.append(test)
        budget -= recorded.durations[test]
    return chosen


def mirror_of(path: str) -> str:
    """Return the path of the test file that mirrors a module, without its ending."""
    *folders, module = Path(path.removeprefix("webhook/")).with_suffix("").parts
    return "/".join(["tests", *folders, f"test_{module}"])


def batches(tests: Iterable[str]) -> list[list[str]]:
    """Divide tests by their files: one file, then four, then the rest. Most mutants need only the first."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    files = list(by_file.values())
    parts = [files[:1], files[1:5], files[5:]]
    return [[test for of_file in part for test in of_file] for part in parts if part]
