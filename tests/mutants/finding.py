"""The mutants of a module, without those that are no fault: annotations, protocols, a dataclass's `slots`."""

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from parso.python.tree import Class, Function, IfStmt, Name, Operator, Param
from parso.tree import BaseNode, NodeOrLeaf

from tests.mutants.operators import Position, ReplaceName, chosen_operators

_OPERATORS = chosen_operators()
_BINARY = ("arith_expr", "term", "expr", "and_expr", "xor_expr", "shift_expr", "power")
_PUNCTUATION = {"(", ")", "[", "]", "{", "}", ",", ":", ".", "=", "->", ";"}
_IDLE_ARGUMENTS = {"frozen", "slots", "kw_only", "gc", "strict", "stacklevel"}
"""Arguments whose change shows only in code that is wrong elsewhere too."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module; `line` is where it begins."""

    path: str
    operator: str
    occurrence: int
    line: int
    last_line: int
    site: str
    """Names the place by its text, so that a move of the code does not change it."""
    variant: int

    def code(self, source: str) -> str:
        """Return the mutated module."""
        changed = mutate_code(source, _OPERATORS[self.operator], self.occurrence)
        if not isinstance(changed, str):
            raise LookupError(f"{self.path}:{self.line}: {self.operator} does not apply")
        return changed

    @property
    def package(self) -> str:
        return package_of(self.path)


def package_of(path: str) -> str:
    """Return the package that the score of a module counts for: `certs`, `webhook`, or a folder in `webhook`."""
    parts = Path(path).parts
    return "/".join(parts[:2]) if parts[0] == "webhook" and len(parts) > 2 else parts[0]


def find_mutants(path: str, source: str) -> list[Mutant]:
    """Return the mutants of a module in the order of their places."""
    lines = source.splitlines()
    counts: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    places: dict[tuple[Position, str], str] = {}
    found = []
    for node in filter(_may_change, ast_nodes(get_ast(source))):
        for name, operator in _OPERATORS.items():
            for index, position in enumerate(operator.mutation_positions(node)):
                occurrence = counts[name]
                counts[name] += 1
                if _is_no_fault(node, name):
                    continue
                family = name.partition("_")[0]
                line, last_line = position[0][0], position[1][0]
                if (position, family) not in places:
                    text = f"{lines[line - 1].strip()}|{family}"
                    places[position, family] = f"{text}|{seen[text]}"
                    seen[text] += 1
                found.append(Mutant(path, name, occurrence, line, last_line, places[position, family], index))
    return found


def _may_change(node: NodeOrLeaf) -> bool:
    """Pass over the leaves that no operator changes: they are most of a module, and there are 50 operators."""
    if isinstance(node, Name):
        return node.value in ReplaceName.OPPOSITES
    if isinstance(node, Operator):
        return node.value not in _PUNCTUATION
    return node.type not in ("string", "newline", "endmarker", "fstring_string", "fstring_start", "fstring_end")


def _is_no_fault(node: NodeOrLeaf, operator: str) -> bool:
    if operator.startswith("ReplaceBinaryOperator") and not _is_arithmetic(node):
        return True
    if operator == "AddNot" and _is_negated_elsewhere(node):
        return True
    child = node
    for parent in (node, *_parents(node)):
        if (
            _is_annotation(parent, child)
            or _is_idle_argument(parent)
            or _is_never_run(parent, child)
            or parent.type in ("import_from", "import_name")
        ):
            return True
        child = parent
    return False


def _is_negated_elsewhere(node: NodeOrLeaf) -> bool:
    """Say yes to the condition that the operators of comparisons and of `not` turn round already."""
    assert isinstance(node, BaseNode)
    return node.children[2 if node.type == "test" else 1].type in ("comparison", "not_test")


def _parents(node: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _is_arithmetic(node: NodeOrLeaf) -> bool:
    """Say no to the star of a parameter list, to an unpacked argument and to a union of types."""
    if not isinstance(node, Operator) or node.parent is None or node.parent.type not in _BINARY:
        return False
    return node.value != "|" or not any(_is_type(child) for child in node.parent.children)


def _is_type(node: NodeOrLeaf) -> bool:
    first = node.get_first_leaf()
    if not isinstance(first, Name):
        return bool(first.value == "None")
    in_capitals = first.value.lstrip("_")[:1].isupper() and not first.value.isupper()
    return in_capitals or first.value in ("str", "int", "float", "bool", "bytes", "dict", "list", "tuple", "set")


def _is_annotation(parent: NodeOrLeaf, child: NodeOrLeaf) -> bool:
    if parent.type in ("annassign", "tfpdef"):
        assert isinstance(parent, BaseNode)
        return child is parent.children[1] or parent.type == "tfpdef"
    if isinstance(parent, Param | Function):
        return child is parent.annotation
    return False


def _is_idle_argument(parent: NodeOrLeaf) -> bool:
    return parent.type == "argument" and parent.get_first_leaf().get_code().strip() in _IDLE_ARGUMENTS


def _is_never_run(parent: NodeOrLeaf, child: NodeOrLeaf) -> bool:
    if isinstance(parent, Class):
        header: str = parent.get_code(include_prefix=False).partition(":")[0]
        return "Protocol" in header
    if isinstance(parent, IfStmt):
        condition: str = parent.children[1].get_code().strip()
        return condition == "TYPE_CHECKING" or condition.startswith("__name__")
    return False


def change(source: str, mutated: str) -> tuple[str, str]:
    """Return the changed lines before and after, without indentation."""
    before, after = [], []
    for line in difflib.ndiff(source.splitlines(), mutated.splitlines()):
        if line.startswith("- "):
            before.append(line[2:].strip())
        elif line.startswith("+ "):
            after.append(line[2:].strip())
    return "\n".join(before), "\n".join(after)
