"""The faults that are tried: operators of cosmic-ray, and own ones written to its operator interface."""

from collections.abc import Iterator, Mapping

import parso
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import ExprStmt, Keyword, Name
from parso.tree import BaseNode, NodeOrLeaf

Position = tuple[tuple[int, int], tuple[int, int]]

_ORDER = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
_ARITHMETIC = (
    ("Add", "Sub"),
    ("Sub", "Add"),
    ("Mul", "FloorDiv"),
    ("Div", "Mul"),
    ("FloorDiv", "Mul"),
    ("Mod", "Mul"),
    ("Pow", "Mul"),
    ("RShift", "LShift"),
    ("LShift", "RShift"),
    ("BitOr", "BitAnd"),
    ("BitAnd", "BitOr"),
    ("BitXor", "BitOr"),
)
_CORE = (
    "AddNot",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ZeroIterationForLoop",
    *(f"ReplaceComparisonOperator_{old}_{new}" for old in _ORDER for new in _ORDER if old != new),
    *(f"ReplaceBinaryOperator_{old}_{new}" for old, new in _ARITHMETIC),
)


class _OwnOperator(Operator):  # type: ignore[misc]  # cosmic-ray has no types
    @classmethod
    def examples(cls) -> tuple[object, ...]:
        return ()


class ExceptionReplacer(_OwnOperator):
    """Replace an exception that is caught by one that nothing raises. cosmic-ray's own fails on `module.Error`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        for caught in _caught(node):
            yield caught.start_pos, caught.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        caught = _caught(node)[index]
        assert caught.parent
        siblings = caught.parent.children
        prefix = caught.get_first_leaf().prefix
        siblings[siblings.index(caught)] = Name(CosmicRayTestingException.__name__, caught.start_pos, prefix=prefix)
        return node


def _caught(node: NodeOrLeaf) -> list[NodeOrLeaf]:
    """Return the exceptions that an `except` clause names: one, or those between parentheses."""
    if node.type != "except_clause" or not isinstance(node, BaseNode):
        return []
    named = node.children[1]
    if not isinstance(named, BaseNode) or named.children[0].get_code().strip() != "(":
        return [named]
    within = named.children[1]
    return within.children[::2] if within.type == "testlist_comp" else [within]


class DeleteCall(_OwnOperator):
    """Replace a statement that only calls something by `pass`: the forgotten invalidation."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        parent = node.parent
        if parent is not None and parent.type == "simple_stmt" and _is_call(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, _index: int) -> NodeOrLeaf:
        return Keyword("pass", node.start_pos, prefix=node.get_first_leaf().prefix)


def _is_call(node: NodeOrLeaf) -> bool:
    if node.type not in ("power", "atom_expr", "await_expr") or not isinstance(node, BaseNode):
        return False
    last = node.children[-1]
    return isinstance(last, BaseNode) and last.type == "trailer" and last.get_first_leaf().value == "("


class ReplaceName(_OwnOperator):
    """Replace a built-in function that is called by its opposite."""

    OPPOSITES: Mapping[str, str] = {"min": "max", "max": "min", "any": "all", "all": "any"}

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        follows = node.get_next_leaf()
        before = node.get_previous_leaf()
        if (
            isinstance(node, Name)
            and node.value in self.OPPOSITES
            and follows is not None
            and follows.value == "("
            and (before is None or before.value not in (".", "def"))
        ):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Name, _index: int) -> Name:
        return Name(self.OPPOSITES[node.value], node.start_pos, prefix=node.prefix)


class ReplaceMembership(_OwnOperator):
    """Replace `in` by `not in` and the other way round."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "comparison" and isinstance(node, BaseNode):
            for operator in node.children[1::2]:
                if _words(operator) in ("in", "not in"):
                    yield operator.start_pos, operator.end_pos

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        places = [place for place, child in enumerate(node.children) if _words(child) in ("in", "not in")]
        replacement = "in" if _words(node.children[places[index]]) == "not in" else "not in"
        node.children[places[index]] = parso.parse(f" {replacement}")
        return node


def _words(node: NodeOrLeaf) -> str:
    return " ".join(node.get_code().split())


class ReplaceAugmentedAssignment(_OwnOperator):
    """Replace `+=` by `-=`, `|=` by `&=` and the other way round."""

    _OPPOSITES: Mapping[str, str] = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if isinstance(node, ExprStmt) and node.children[1].get_code().strip() in self._OPPOSITES:
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: ExprStmt, _index: int) -> ExprStmt:
        node.children[1] = parso.parse(f" {self._OPPOSITES[node.children[1].get_code().strip()]}")
        return node


def chosen_operators() -> dict[str, Operator]:
    """Return the operators by name, the same order every time."""
    provider = OperatorProvider()
    own = (DeleteCall, ExceptionReplacer, ReplaceAugmentedAssignment, ReplaceMembership, ReplaceName)
    return {name: provider[name]() for name in sorted(_CORE)} | {cls.__name__: cls() for cls in own}
